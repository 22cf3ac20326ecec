package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// mariadb is a primary with replicas, and an administrator.
type mariadb struct {
	semisync bool // AFTER_SYNC, and no end of the wait
}

const mariadbd = "/usr/sbin/mariadbd --no-defaults --datadir=$PWD/data --socket=$PWD/socket --tmpdir=$PWD --innodb-buffer-pool-size=64M --innodb-log-file-size=16M --max-connections=400 --skip-name-resolve "

// install makes the data of a machine.
func install(c *cluster, m *machine) {
	c.run(m, "mysql", "mariadb-install-db --no-defaults --skip-test-db --auth-root-authentication-method=normal --datadir="+m.dir+"/data >"+m.dir+"/install.log 2>&1")
}

// askMariaDB returns the answer to statements, or the error.
func askMariaDB(m *machine, statements string) string {
	out, err := m.try("mysql", "mariadb --no-defaults -u root -S "+m.dir+`/socket -BNe "`+statements+`"`)
	if err != nil {
		return "error: " + out
	}
	return out
}

// waitForReplica is for the primary alone: a replica would wait for one of its own.
const waitForReplica = "set global rpl_semi_sync_master_enabled=1"

func answersMariaDB(m *machine) bool { return askMariaDB(m, "select 1") == "1" }

// grant gives clients what read_only stops: it does not stop root.
const grant = "create user root@'10.77.0.%'; grant all on *.* to root@'10.77.0.%' with grant option; create database state;" +
	" create user client@'10.77.0.%'; grant all on state.* to client@'10.77.0.%'"

// order makes statements that must succeed.
func order(c *cluster, m *machine, statements string) {
	if c.err == nil {
		if out := askMariaDB(m, statements); strings.HasPrefix(out, "error") {
			c.note(fmt.Errorf("%s: %s: %s", m.name, statements, out))
		}
	}
}

func (d *mariadb) start(c *cluster) {
	c.primary = c.machines[0]
	for _, m := range c.machines {
		install(c, m)
		d.serve(c, m)
	}
	for _, m := range c.machines {
		c.until(startTime, m.name+" answers", func() bool { return answersMariaDB(m) })
		if m != c.primary {
			d.follow(c, m)
		} else {
			order(c, m, "set global read_only=0; "+grant)
		}
	}
	if d.semisync {
		order(c, c.primary, waitForReplica)
		c.until(startTime, "a replica is synchronous", func() bool {
			return !strings.Contains("0 error", askMariaDB(c.primary, "select variable_value from information_schema.global_status where variable_name='rpl_semi_sync_master_clients'"))
		})
	}
}

func (d *mariadb) serve(c *cluster, m *machine) {
	semisync := ""
	if d.semisync {
		semisync = " --rpl-semi-sync-slave-enabled=1 --rpl-semi-sync-master-timeout=1000000000000 --rpl-semi-sync-master-wait-point=AFTER_SYNC"
	}
	c.serve(m, "mysql", mariadbd+"--log-bin=log --sync-binlog=1 --gtid-strict-mode=1 --log-slave-updates=1 --slave-net-timeout=4 --read-only=1 --server-id="+m.name[1:]+semisync)
}

// follow lets a machine follow the primary.
func (d *mariadb) follow(c *cluster, m *machine) {
	order(c, m, fmt.Sprintf("stop slave; change master to master_host='%s', master_user='root', master_connect_retry=1, master_use_gtid=slave_pos; start slave", c.primary.ip))
}

// urls returns that of the primary, and of those that may take its place.
func (d *mariadb) urls(c *cluster) []string { return []string{mariadbURL(c.machines)} }

func mariadbURL(machines []*machine) string {
	var hosts []string
	for _, m := range machines {
		hosts = append(hosts, m.ip)
	}
	return "mysql://client@" + strings.Join(hosts, ",") + "/state"
}

func (d *mariadb) write(m *machine) error {
	out := askMariaDB(m, "select @@read_only") // root may write all the same
	if out == "0" {
		out += askMariaDB(m, "create table if not exists state.probe (n int); insert into state.probe values (1)")
	}
	if out != "0" {
		return fmt.Errorf("%s", out)
	}
	return nil
}

// promote gives the place of the primary to the replica that has most of its log, when
// that has made all it has.
func (d *mariadb) promote(c *cluster) {
	c.pause(time.Second)
	old, most := c.primary, -1
	for _, m := range c.living() {
		if m == old {
			continue
		}
		var domain, server, n int
		got := askMariaDB(m, "select @@gtid_slave_pos")
		if strings.HasPrefix(askMariaDB(m, "show slave status"), "error") {
			continue
		}
		// What the IO thread has read is what was acknowledged.
		read, _ := m.try("mysql", "mariadb --no-defaults -u root -S "+m.dir+"/socket -e 'show slave status\\G' | sed -n 's/.*Gtid_IO_Pos: //p'")
		if _, err := fmt.Sscanf(read, "%d-%d-%d", &domain, &server, &n); err == nil && n > most {
			c.primary, most = m, n
		}
		c.logf("%s has read %s, and made %s", m.name, read, got)
	}
	m := c.primary
	order(c, m, "stop slave io_thread")
	c.until(startTime, "the replica has made what it has read", func() bool {
		var domain, server, n int
		_, err := fmt.Sscanf(askMariaDB(m, "select @@gtid_slave_pos"), "%d-%d-%d", &domain, &server, &n)
		return err == nil && n >= most
	})
	if order(c, m, "stop slave; reset slave all; set global read_only=0"); d.semisync {
		order(c, m, waitForReplica)
	}
	for _, other := range c.living() {
		if other == old { // it has written, and has not followed
			order(c, other, "set global gtid_slave_pos=@@gtid_binlog_pos")
		}
		if other != m {
			d.follow(c, other)
		}
	}
}

// demote lets the replicas have all that the primary has made.
func (d *mariadb) demote(c *cluster) {
	order(c, c.primary, "set global read_only=1")
	made := askMariaDB(c.primary, "select @@gtid_binlog_pos")
	c.until(startTime, "the replicas have made all", func() bool {
		return !slices.ContainsFunc(c.living(), func(m *machine) bool {
			return m != c.primary && askMariaDB(m, "select @@gtid_slave_pos") != made
		})
	})
	order(c, c.primary, "set global rpl_semi_sync_master_enabled=0")
	d.promote(c)
}

// galera is a cluster in which each node takes writes.
type galera struct {
	clients string // one, all, haproxy
}

func (g *galera) start(c *cluster) {
	c.primary = c.machines[0]
	for i, m := range c.machines {
		install(c, m)
		g.serve(c, m, i == 0)
		c.until(startTime, m.name+" has joined", func() bool {
			return strings.HasSuffix(askMariaDB(m, "show status like 'wsrep_ready'"), "ON")
		})
		if i == 0 {
			order(c, m, grant)
		}
	}
	if g.clients != "haproxy" {
		return
	}
	text := "global\n  maxconn 600\ndefaults\n  mode tcp\n  timeout connect 2s\n  timeout client 300s\n  timeout server 300s\nlisten galera\n" +
		"  bind :3306\n  balance roundrobin\n  default-server check inter 500 fall 2 rise 2 on-marked-down shutdown-sessions\n"
	for _, m := range c.machines {
		text += fmt.Sprintf("  server %s %s:3306\n", m.name, m.ip)
	}
	c.file(c.proxy, "haproxy.cfg", text)
	c.serve(c.proxy, "haproxy", "/usr/sbin/haproxy -f haproxy.cfg")
	c.until(startTime, "HAProxy answers", func() bool {
		_, err := c.proxy.try("mysql", "mariadb --no-defaults -u client -h "+c.proxy.ip+" -e 'select 1'")
		return err == nil
	})
}

func (g *galera) serve(c *cluster, m *machine, first bool) {
	var hosts []string
	for _, other := range c.machines {
		hosts = append(hosts, other.ip)
	}
	text := mariadbd + "--binlog-format=ROW --innodb-autoinc-lock-mode=2 --wsrep-on=1 --wsrep-provider=/usr/lib/galera/libgalera_smm.so" +
		" --wsrep-provider-options='gcache.size=64M' --wsrep-sst-method=rsync --wsrep-node-name=" + m.name + " --wsrep-node-address=" + m.ip +
		" --wsrep-cluster-address=gcomm://" + strings.Join(hosts, ",")
	if first {
		text += " --wsrep-new-cluster"
	}
	c.serve(m, "mysql", text)
}

func (g *galera) urls(c *cluster) []string {
	switch ms := c.machines; g.clients {
	case "haproxy":
		return []string{mariadbURL([]*machine{c.proxy})}
	case "all":
		return []string{mariadbURL(ms), mariadbURL([]*machine{ms[1], ms[2], ms[0]}), mariadbURL([]*machine{ms[2], ms[0], ms[1]})}
	default:
		return []string{mariadbURL(ms)}
	}
}

func (g *galera) write(m *machine) error { return (&mariadb{}).write(m) }

func (g *galera) promote(*cluster) {}

// demote ends a node, which comes back.
func (g *galera) demote(c *cluster) {
	c.run(c.primary, "mysql", "mariadb-admin --no-defaults -u root -S "+c.primary.dir+"/socket shutdown")
	c.until(startTime, "the node has ended", func() bool {
		out, err := c.primary.try("mysql", "ip netns pids "+c.primary.name+" | wc -l")
		return err == nil && out <= "3"
	})
	g.serve(c, c.primary, false)
}
