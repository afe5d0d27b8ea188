//! Medians in a table, and the ratios beside their bounds.

use std::fmt::Write;

use keelson_tests::Calls;

use crate::contender::{Contender, Peer};
use crate::load::Sample;

pub(crate) struct Run {
    pub(crate) contender: Contender,
    pub(crate) namespace: String,
    pub(crate) sample: Sample,
}

/// A run during which others took more than this share of the machine counts only where there is no better one.
const DISTURBED: f64 = 0.10;
/// MiB, with both plugins.
const RESIDENT: f64 = 30.0;

/// One run on one line.
pub(crate) fn line(sample: &Sample) -> String {
    let Sample { created, last_child, last_status, cpu, server_cpu, resident, others, .. } = sample;
    format!(
        "created {:.2} s, last child {:.2} s, last status {:.2} s; CPU {cpu:.2} ms, server {server_cpu:.2} ms; {resident:.1} MiB; others {:.0} %",
        created.as_secs_f64(),
        last_child.as_secs_f64(),
        last_status.as_secs_f64(),
        others * 100.0
    )
}

/// Everything that was found. `calls` are those of all contenders.
pub(crate) fn table(count: usize, runs: &[Run], calls: &Calls) -> String {
    let mut text = format!(
        "\n{:38}{:>11}{:>11}{:>16}{:>16}{:>9}{:>9}{:>14}{:>8}\n{:38}{:>11}{:>11}{:>16}{:>16}{:>9}{:>9}{:>14}{:>8}\n",
        format!("{count} Databases, medians"),
        "children",
        "statuses",
        "children",
        "status",
        "CPU",
        "server",
        "resident",
        "calls",
        "",
        "last, s",
        "last, s",
        "p50/p99, s",
        "p50/p99, s",
        "ms each",
        "ms each",
        "(peak), MiB",
        "each",
    );
    for contender in Contender::all() {
        let of = |value: fn(&Sample) -> f64| median(runs, contender, value);
        let Some(children) = of(|s| s.last_child.as_secs_f64()) else { continue };
        let get = |value| of(value).unwrap_or_default();
        let _ = writeln!(
            text,
            "{:38}{:>11.2}{:>11.2}{:>16}{:>16}{:>9.2}{:>9.2}{:>14}{:>8.2}",
            contender.title(),
            children,
            get(|s| s.last_status.as_secs_f64()),
            format!("{:.2}/{:.2}", get(|s| s.children_p50.as_secs_f64()), get(|s| s.children_p99.as_secs_f64())),
            format!("{:.2}/{:.2}", get(|s| s.status_p50.as_secs_f64()), get(|s| s.status_p99.as_secs_f64())),
            get(|s| s.cpu),
            get(|s| s.server_cpu),
            format!("{:.1} ({:.1})", get(|s| s.resident), get(|s| s.peak)),
            calls_each(contender, count, runs, calls),
        );
    }
    text += &ratios(runs);
    text += &remarks(runs, calls);
    text
}

fn ratios(runs: &[Run]) -> String {
    let ratio = |peer: Peer, value: fn(&Sample) -> f64| {
        Some(median(runs, Contender::Host, value)? / median(runs, Contender::Peer(peer), value)?)
    };
    let status = |s: &Sample| s.last_status.as_secs_f64();
    let children = |s: &Sample| s.last_child.as_secs_f64();
    let cpu = |s: &Sample| s.cpu;
    let rows = [
        ("last status / full floor", ratio(Peer::Full, status), 1.10),
        ("last child / controller-runtime", ratio(Peer::Runtime, children), 1.00),
        ("CPU / full floor", ratio(Peer::Full, cpu), 0.50),
        ("CPU / floor of three POSTs", ratio(Peer::Post, cpu), 0.50),
        ("resident memory, MiB", median(runs, Contender::Host, |s| s.resident), RESIDENT),
    ];
    let mut text = format!("\n{:38}{:>11}{:>11}\n", "keelson / peer", "measured", "bound");
    for (what, measured, bound) in rows {
        let Some(measured) = measured else { continue };
        let verdict = if measured <= bound { "" } else { "  MISSED" };
        let _ = writeln!(text, "{what:38}{measured:>11.2}{:>11}{verdict}", format!("<= {bound:.2}"));
    }
    for (what, measured) in [
        ("last status / controller-runtime", ratio(Peer::Runtime, status)),
        ("last status / floor of three POSTs", ratio(Peer::Post, status)),
        ("last child / floor of three POSTs", ratio(Peer::Post, children)),
        ("server's CPU / full floor", ratio(Peer::Full, |s| s.server_cpu)),
    ] {
        let Some(measured) = measured else { continue };
        let _ = writeln!(text, "{what:38}{measured:>11.2}");
    }
    text
}

/// What a reader should know before believing the figures.
fn remarks(runs: &[Run], calls: &Calls) -> String {
    let mut text = String::new();
    for Run { contender, namespace, sample } in runs {
        if sample.others > DISTURBED {
            let counts = counted(runs, *contender).iter().any(|counted| counted.namespace == *namespace);
            let words = if counts { "and it counts for want of a better run" } else { "so it does not count" };
            let _ = writeln!(text, "{namespace}: others took {:.0} % of the machine, {words}", sample.others * 100.0);
        }
        let refused = calls.filter(|call| call.namespace == *namespace && call.code >= 400).len();
        if refused > 0 {
            let _ = writeln!(text, "{namespace}: {refused} calls of {} were refused", contender.name());
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// Calls in the runs' own namespaces.
fn calls_each(contender: Contender, count: usize, runs: &[Run], calls: &Calls) -> f64 {
    let of: Vec<&Run> = runs.iter().filter(|run| run.contender == contender).collect();
    let made = calls.filter(|call| of.iter().any(|run| run.namespace == call.namespace)).len();
    made as f64 / (count * of.len()).max(1) as f64
}

/// The undisturbed runs of a contender; all, where none is.
fn counted(runs: &[Run], contender: Contender) -> Vec<&Run> {
    let all = || runs.iter().filter(|run| run.contender == contender);
    let calm: Vec<&Run> = all().filter(|run| run.sample.others <= DISTURBED).collect();
    if calm.is_empty() { all().collect() } else { calm }
}

fn median(runs: &[Run], contender: Contender, value: fn(&Sample) -> f64) -> Option<f64> {
    let mut values: Vec<f64> = counted(runs, contender).into_iter().map(|run| value(&run.sample)).collect();
    values.sort_by(f64::total_cmp);
    let (upper, lower) = (values.get(values.len() / 2)?, values.get(values.len().checked_sub(1)? / 2)?);
    Some(f64::midpoint(*upper, *lower))
}
