// Command peers measures what it costs to handle a message durably: with a
// workspace, with what a good engineer writes by hand, with the durable execution
// of DBOS and with the job queue of River. It prints a table.
//
// Contenders of one engine take turns in rounds, so that they meet the same
// noise. Messages have 71 bytes of text; a state has 50 messages and 50
// results. The time of a message ends when the answer is there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	engine := flag.String("engine", "", "the engine: "+strings.Join(engineNames, ", ")+" (default: all of them)")
	rounds := flag.Int("rounds", 5, "the number of `rounds`")
	duration := flag.Duration("duration", time.Second, "the time of a round")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *engine, *rounds, *duration); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, engine string, rounds int, duration time.Duration) (err error) {
	engines := engineNames
	if engine != "" {
		if !slices.Contains(engineNames, engine) {
			return fmt.Errorf("peers: no engine %q", engine)
		}
		engines = []string{engine}
	}
	if rounds < 1 {
		return errors.New("peers: at least one round")
	}
	folder, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	var rows []row
	for _, engine := range engines {
		b := &bench{engine: engine, rounds: rounds, duration: duration, folder: folder, progress: os.Stderr}
		measured, failed := b.run(ctx)
		rows = append(rows, measured...)
		if failed != nil {
			err = failed // what was measured before is printed
			break
		}
	}
	return errors.Join(err, writeTable(os.Stdout, rows))
}
