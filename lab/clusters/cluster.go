package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// folder has what the machines store.
const folder = "/mnt"

// startTime is how long something may take that only waits for servers.
const startTime = 3 * time.Minute

// cluster is what one run has started. Its methods do nothing after an error, which
// err has.
type cluster struct {
	engine   engine
	machines []*machine
	primary  *machine // has what the fault is about
	proxy    *machine // of clients; nil if there is none

	err    error
	began  time.Time
	events []event
}

// event is something that has happened to the servers.
type event struct {
	at   time.Time
	name string
	// back is the time after which the engine itself, asked by its own client, has
	// taken a write again; 0 if it was not asked.
	back time.Duration
}

// machine is a network namespace with an address and a folder.
type machine struct {
	name, ip, dir string
	dead          bool
}

// newCluster makes the machines of a topology and the network between them, in which
// this process is host 254.
func newCluster(t *topology) (*cluster, error) {
	c := &cluster{engine: t.engine, began: time.Now()}
	c.local("ip link set lo up")
	c.local("ip link add hub type bridge")
	c.local("ip addr add 10.77.0.254/24 dev hub")
	c.local("ip link set hub up")
	for n := range t.machines {
		c.machines = append(c.machines, c.newMachine(n+1))
	}
	if t.proxied {
		c.proxy = c.newMachine(100)
	}
	return c, c.err
}

func (c *cluster) newMachine(n int) *machine {
	m := &machine{name: fmt.Sprint("m", n), ip: fmt.Sprint("10.77.0.", n), dir: filepath.Join(folder, fmt.Sprint("m", n))}
	c.local("mkdir -m 777 " + m.dir)
	c.local("ip netns add " + m.name)
	c.local(fmt.Sprintf("ip link add v%s type veth peer name eth0 netns %s", m.name, m.name))
	c.local(fmt.Sprintf("ip link set v%s master hub up", m.name))
	c.local(fmt.Sprintf("ip -n %s addr add %s/24 dev eth0", m.name, m.ip))
	c.local(fmt.Sprintf("ip -n %s link set eth0 up", m.name))
	c.local(fmt.Sprintf("ip -n %s link set lo up", m.name))
	return m
}

func (c *cluster) logf(format string, args ...any) {
	if c.err == nil {
		log.Printf("%5.1f s  %s", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
	}
}

func (c *cluster) note(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *cluster) pause(d time.Duration) {
	if c.err == nil {
		time.Sleep(d)
	}
}

// until waits until f reports true.
func (c *cluster) until(limit time.Duration, what string, f func() bool) {
	for end := time.Now().Add(limit); c.err == nil && !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			c.note(fmt.Errorf("it is not so within %s that %s", limit, what))
		}
	}
}

// local runs a command beside the machines.
func (c *cluster) local(command string) {
	if c.err != nil {
		return
	}
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		c.note(fmt.Errorf("%s: %w: %s", command, err, out))
	}
}

// command returns a command on a machine.
func (m *machine) command(ctx context.Context, user, text string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", "netns", "exec", m.name,
		"setpriv", "--reuid", user, "--regid", user, "--init-groups", "sh", "-c", text)
}

// try runs a command on a machine for five seconds at the most, and returns what it
// prints.
func (m *machine) try(user, text string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cmd := m.command(ctx, user, text)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// run runs a command on a machine to its end, and returns what it prints.
func (c *cluster) run(m *machine, user, text string) string {
	if c.err != nil {
		return ""
	}
	out, err := m.command(context.Background(), user, text).CombinedOutput()
	if err != nil {
		c.note(fmt.Errorf("%s: %s: %w: %s", m.name, text, err, out))
	}
	return strings.TrimSpace(string(out))
}

// serve starts a server on a machine.
func (c *cluster) serve(m *machine, user, text string) {
	if c.err != nil {
		return
	}
	program, _, _ := strings.Cut(text, " ")
	out, err := os.OpenFile(filepath.Join(m.dir, filepath.Base(program)+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		c.note(err)
		return
	}
	defer out.Close()
	cmd := m.command(context.Background(), user, "cd "+m.dir+" && exec "+strings.Join(strings.Fields(text), " "))
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		c.note(err)
		return
	}
	go func() { _ = cmd.Wait() }()
}

// file writes a file of a machine.
func (c *cluster) file(m *machine, name, text string) {
	if c.err == nil {
		c.note(os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o644))
	}
}

// signal sends a signal to all processes of a machine.
func (m *machine) signal(s syscall.Signal) {
	m.dead = m.dead || s == syscall.SIGKILL
	for range 2 { // also what was forked meanwhile
		pids, _ := exec.Command("ip", "netns", "pids", m.name).Output()
		for _, field := range strings.Fields(string(pids)) {
			var pid int
			if _, err := fmt.Sscan(field, &pid); err == nil {
				_ = syscall.Kill(pid, s)
			}
		}
	}
}

// cut lets the machine and all others look for each other at an address of Ethernet
// that nobody has. Clients still reach it.
func (c *cluster) cut(m *machine) {
	for _, other := range c.machines {
		if other != m {
			for _, pair := range [][2]*machine{{m, other}, {other, m}} {
				c.local(fmt.Sprintf("ip -n %s neigh replace %s lladdr 02:00:00:00:77:77 dev eth0 nud permanent", pair[0].name, pair[1].ip))
			}
		}
	}
}

// living returns the machines that were not killed.
func (c *cluster) living() []*machine {
	var living []*machine
	for _, m := range c.machines {
		if !m.dead {
			living = append(living, m)
		}
	}
	return living
}

// write reports whether one of some machines takes a write, by the engine's own
// client.
func (c *cluster) write(machines []*machine) bool {
	took := make(chan bool, len(machines))
	for _, m := range machines {
		go func() { took <- c.engine.write(m) == nil }()
	}
	for range machines {
		if <-took {
			return true
		}
	}
	return false
}

var faults = []string{"kill", "cut", "stop", "demote", "move", "storetest"}

// inflict makes a fault, and waits until the engine takes writes again.
func (c *cluster) inflict(fault string) {
	m := c.primary
	if c.happens(fault); c.err != nil {
		return
	}
	switch fault {
	case "kill":
		m.signal(syscall.SIGKILL)
	case "cut":
		c.cut(m)
		c.observe(25*time.Second, m)()
		c.happens("kill")
		m.signal(syscall.SIGKILL)
	case "stop":
		m.signal(syscall.SIGSTOP)
		c.observe(20*time.Second, m)()
		c.happens("continue")
		m.signal(syscall.SIGCONT)
	case "demote":
		c.engine.demote(c)
	case "move":
		c.engine.(*redisCluster).move(c)
	}
	back := c.observe(2*time.Minute, nil)
	if m.dead {
		c.engine.promote(c)
	}
	back()
	if last := c.events[len(c.events)-1]; last.back == 0 {
		c.note(fmt.Errorf("the cluster takes no writes after %s", last.name))
	}
}

// observe notes how long after the last event another machine than one takes writes.
// It returns a function that waits for that: for the whole time, if it is for one.
func (c *cluster) observe(limit time.Duration, except *machine) (wait func()) {
	last, done := &c.events[len(c.events)-1], make(chan struct{})
	living := slices.DeleteFunc(c.living(), func(m *machine) bool { return m == except })
	go func() {
		defer close(done)
		for time.Since(last.at) < limit && last.back == 0 {
			if c.write(living) {
				last.back = time.Since(last.at)
				c.logf("the engine takes writes")
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return func() {
		if <-done; except != nil {
			time.Sleep(time.Until(last.at.Add(limit)))
		}
	}
}

func (c *cluster) happens(name string) {
	if c.logf("%s", name); c.err == nil {
		c.events = append(c.events, event{at: time.Now(), name: name})
	}
}
