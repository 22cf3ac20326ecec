// Command clusters lets a replicated store fail under load, and says what has become
// of the messages.
//
//	go -C lab run ./clusters [flags] TOPOLOGY FAULT
//
// It starts the servers of a topology, from Debian's packages, each with what belongs
// to it in a network namespace of its own, and three processes that handle messages.
// Each message adds one to a counter, appends its id to a list and, on an SQL server,
// inserts a row by CommitTx. After the fault it looks for each message that was
// accepted. It prints one row of a table, and with -v what was refused and logged. The
// exit status is 1 if a promise of the topology is broken.
//
// Faults: kill (kill -9 of the primary's machine), cut (its machine reaches no other
// one for 25 s, only the clients, and is then killed), stop (it is stopped for 20 s),
// demote (another server takes its place without a fault), move (the slot of the store
// moves to another master of a Redis Cluster). In place of a fault, storetest runs the
// tests that every store must pass.
//
// It needs root, and util-linux and iproute2. Processes, namespaces and files are in
// namespaces of the command, and end with it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// settings are what the command line says.
type settings struct {
	topology, fault string
	users           int
	think           time.Duration // of a user, between two messages, on average
	before, after   time.Duration // how long there is load before the fault, and after it
	verbose         bool
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("clusters: ")
	inside := len(os.Args) > 1 && os.Args[1] == "inside"
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if err := work(os.Args[2:]); err != nil {
			log.Fatal(err)
		}
		return
	}
	args := os.Args[1:]
	if inside {
		args = args[1:]
	}
	s, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		log.Fatal(err)
	case inside:
		err = run(s)
	default:
		err = enter(s, args)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		log.Fatal(err)
	}
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("clusters", flag.ContinueOnError)
	f.IntVar(&s.users, "users", 200, "the number of users")
	f.DurationVar(&s.think, "think", 4*time.Second, "the time of a user between two messages")
	f.DurationVar(&s.before, "before", 10*time.Second, "the time of load before the fault")
	f.DurationVar(&s.after, "after", 30*time.Second, "the time of load after the fault")
	f.BoolVar(&s.verbose, "v", false, "print what callers were told and what was logged")
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "usage: clusters [flags] TOPOLOGY FAULT\nfaults: %s\ntopologies:\n", strings.Join(faults, ", "))
		for _, t := range topologies {
			fmt.Fprintf(f.Output(), "  %-16s %s (packages: %s)\n", t.name, t.about, t.packages)
		}
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return s, err
	}
	s.topology, s.fault = f.Arg(0), f.Arg(1)
	if t := find(s.topology); t == nil || !slices.Contains(faults, s.fault) || f.NArg() != 2 || s.fault == "move" && t.name != "redis-cluster" {
		f.Usage()
		return s, flag.ErrHelp
	}
	return s, nil
}

// enter runs the command in namespaces of its own. The kernel ends what is left in
// them with their first process.
func enter(s settings, args []string) error {
	t := find(s.topology)
	for _, program := range t.programs {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: apt-get install --no-install-recommends %s", err, t.packages)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	const first = "mount -t tmpfs -o mode=755 clusters /run && mkdir /run/netns && mount -t tmpfs -o mode=755 clusters " + folder + ` && "$0" inside "$@"; exit $?`
	cmd := exec.Command("unshare", append([]string{
		"--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", first, self,
	}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}

// run makes one run.
func run(s settings) error {
	t := find(s.topology)
	c, err := newCluster(t)
	if err != nil {
		return err
	}
	began := time.Now()
	c.engine.start(c)
	c.until(startTime, "the cluster takes writes", func() bool { return c.write(c.machines) })
	c.logf("%s has started within %s", t.name, time.Since(began).Round(time.Second))
	if s.fault == "storetest" {
		c.test()
		return c.err
	}
	workers := c.startWorkers(s)
	c.pause(s.before)
	c.inflict(s.fault)
	c.pause(s.after)
	for _, w := range workers {
		_ = w.Process.Signal(syscall.SIGTERM)
	}
	for _, w := range workers {
		c.note(w.Wait())
	}
	if c.err != nil {
		c.printLogs(os.Stderr)
		return c.err
	}
	r, err := c.check()
	if err != nil {
		return err
	}
	if s.verbose {
		r.details(os.Stdout)
	}
	fmt.Print(r.row(s, c))
	return r.verdict(t)
}

// printLogs prints the ends of the logs of all servers.
func (c *cluster) printLogs(w io.Writer) {
	for _, m := range slices.Concat(c.machines, []*machine{c.proxy}) {
		if m == nil {
			continue
		}
		out, _ := exec.Command("sh", "-c", "tail -n 5 "+m.dir+"/*.log").CombinedOutput()
		fmt.Fprintf(w, "%s\n", out)
	}
}
