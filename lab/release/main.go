// Command release makes of a checkout of this repository what is tagged: in
// each module, the lines that replace other modules of the repository are gone,
// these are required at the version of the release, and go.sum has their hashes.
//
//	go -C lab run ./release -proxy FOLDER CHECKOUT vX.Y.Z
//
// It writes the modules to FOLDER as a module proxy serves them, and prints
// their tags. scripts/release runs it.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	proxy := flag.String("proxy", "", "the `folder` to which the modules are written")
	flag.Parse()
	if flag.NArg() != 2 || *proxy == "" {
		fmt.Fprintln(os.Stderr, "usage: release -proxy FOLDER CHECKOUT vX.Y.Z")
		os.Exit(2)
	}
	tags, err := release(flag.Arg(0), flag.Arg(1), *proxy)
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	for _, tag := range tags {
		fmt.Println(tag)
	}
}
