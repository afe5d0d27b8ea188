//! The host's probes and metrics over plain HTTP, and the text format of the latter.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, bail};

const PATIENCE: Duration = Duration::from_secs(5);

/// One scrape.
#[derive(Debug, Clone)]
pub struct Metrics(String);

impl Metrics {
    /// The sum of all samples of this name whose labels contain these, 0 where there is none.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.0.lines().filter_map(|line| sample(line, name, labels)).sum()
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

fn sample(line: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let rest = line.strip_prefix(name)?;
    let (set, value) = match rest.strip_prefix('{') {
        Some(rest) => rest.rsplit_once('}')?,
        None => ("", rest.strip_prefix(' ')?),
    };
    let wanted = |(key, value): &(&str, &str)| format!(",{set},").contains(&format!(",{key}=\"{value}\","));
    labels.iter().all(wanted).then(|| value.split_whitespace().next()?.parse().ok())?
}

/// What a scrape answered.
pub fn parse(text: String) -> Metrics {
    Metrics(text)
}

/// A GET of a loopback address: status and body.
pub async fn get(address: &str, path: &str) -> anyhow::Result<(u16, String)> {
    let (address, path) = (address.to_owned(), path.to_owned());
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(&address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        anyhow::Ok(answer)
    })
    .await??;
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { bail!("no HTTP answer: {answer:?}") };
    let status = head.split_whitespace().nth(1).and_then(|s| s.parse().ok()).context("no status line")?;
    Ok((status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_by_name_and_labels() {
        let metrics = parse(
            "# HELP a_total x\na_total{kind=\"x\",result=\"ok\"} 2\na_total{kind=\"y\",result=\"ok\"} 3\na_total_more 9\nb 1.5\n"
                .to_owned(),
        );
        assert!((metrics.sum("a_total", &[]) - 5.0).abs() < f64::EPSILON);
        assert!((metrics.sum("a_total", &[("kind", "y")]) - 3.0).abs() < f64::EPSILON);
        assert!((metrics.sum("a_total", &[("kind", "z")])).abs() < f64::EPSILON);
        assert!((metrics.sum("b", &[]) - 1.5).abs() < f64::EPSILON);
    }
}
