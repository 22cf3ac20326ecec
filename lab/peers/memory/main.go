// Command memory compares what a State costs and keeps in one process with a map
// under a mutex and with the states of eino and Genkit. It prints a table.
//
//	go -C lab/peers run ./memory
//	go -C lab/peers run ./memory -svg ../../docs/memory.svg
//
// Each contender does what its documentation shows: to add to a list, the others
// read it, append and write it back, a State is given what is new. Times are of
// one run after another on one machine: compare them with each other only.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	svg := flag.String("svg", "", "the `file` for a drawing of the times")
	flag.Parse()
	if err := run(*svg); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

func run(svg string) error {
	rows := make([]row, len(contenders))
	for i, c := range contenders {
		rows[i] = measure(c)
	}
	fmt.Println("| | set and get a number | add to a list of 1 000 | read a list of 1 000 | lost of 100 | what was read and is changed by its reader |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, r := range rows {
		fmt.Println(r)
	}
	if svg == "" {
		return nil
	}
	return os.WriteFile(svg, []byte(draw(rows)), 0o644)
}
