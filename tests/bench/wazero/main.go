// The same plugin's code as Yoke runs its flights: a core module that wazero has compiled once, instantiated anew for each
// render, the object on its stdin and the children on its stdout. For each number read from stdin it renders so often and
// answers in nanoseconds.
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: wazero MODULE OBJECT")
	}
	module, err := os.ReadFile(os.Args[1])
	must(err)
	object := []byte(os.Args[2])
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	// The contract's log, which is linked and not called.
	logged := func(context.Context, uint32, uint32, uint32, uint32, uint32) {}
	_, err = runtime.NewHostModuleBuilder("keelson:operator/log@0.1.0").
		NewFunctionBuilder().WithFunc(logged).Export("log").Instantiate(ctx)
	must(err)
	compiled, err := runtime.CompileModule(ctx, module)
	must(err)

	render := func() []byte {
		var out bytes.Buffer
		config := wazero.NewModuleConfig().WithName("").WithStdin(bytes.NewReader(object)).WithStdout(&out).WithStderr(os.Stderr)
		instance, err := runtime.InstantiateModule(ctx, compiled, config)
		must(err)
		must(instance.Close(ctx))
		return out.Bytes()
	}
	if children := render(); !bytes.Contains(children, []byte(`"Service"`)) {
		log.Fatalf("rendered %q", children)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var times int
		_, err := fmt.Sscan(lines.Text(), &times)
		must(err)
		start := time.Now()
		for range times {
			render()
		}
		fmt.Println(time.Since(start).Nanoseconds())
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
