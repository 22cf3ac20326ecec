package main

import (
	"fmt"
	"strings"
	"time"
)

// postgres is a primary with standbys by streaming, and an administrator.
type postgres struct {
	wait    string // synchronous_standby_names without the names; "" if no commit waits
	bouncer bool
}

const (
	postgresBin = "/usr/lib/postgresql/15/bin/"
	// writeProbe makes a write, and waits for standbys as those of the store do.
	writeProbe = `psql -qXh 127.0.0.1 -U postgres -d postgres -c 'create table if not exists probe (n int)' -c 'insert into probe values (1)'`
)

func (p *postgres) start(c *cluster) {
	c.primary = c.machines[0]
	for i, m := range c.machines {
		if i == 0 {
			c.run(m, "postgres", postgresBin+"initdb --no-sync -A trust -U postgres -D "+m.dir+"/data")
			c.run(m, "postgres", "echo 'host all,replication all 10.77.0.0/24 trust' >>"+m.dir+"/data/pg_hba.conf")
		} else {
			c.run(m, "postgres", postgresBin+"pg_basebackup --no-sync -c fast -X stream -R -U postgres -h "+c.primary.ip+" -D "+m.dir+"/data")
		}
		p.serve(c, m)
		c.until(startTime, m.name+" answers", func() bool { return p.ask(m, "select 1") == "1" })
	}
	if p.wait != "" {
		for _, m := range c.machines {
			p.ask(m, fmt.Sprintf("alter system set synchronous_standby_names = '%s (%s)'", p.wait, p.others(c, m)))
		}
		c.run(c.primary, "postgres", "psql -qXh 127.0.0.1 -c 'select pg_reload_conf()'")
		c.until(startTime, "a standby is synchronous", func() bool {
			return p.ask(c.primary, "select count(*) > 0 from pg_stat_replication where sync_state in ('sync', 'quorum')") == "t"
		})
	}
	if p.bouncer {
		p.bounce(c)
	}
}

// serve starts the server of a machine. A standby follows the primary.
func (p *postgres) serve(c *cluster, m *machine) {
	c.serve(m, "postgres", fmt.Sprintf(postgresBin+`postgres -D data -h '*' -k %s -c cluster_name=%s -c max_connections=300
		-c wal_log_hints=on -c wal_keep_size=256MB -c shared_buffers=64MB -c primary_conninfo='host=%s user=postgres application_name=%s'`,
		m.dir, m.name, c.primary.ip, m.name))
}

// others returns the names of all machines but one.
func (p *postgres) others(c *cluster, m *machine) string {
	var names []string
	for _, other := range c.machines {
		if other != m {
			names = append(names, other.name)
		}
	}
	return strings.Join(names, ", ")
}

// ask returns the answer to a query, or the error.
func (p *postgres) ask(m *machine, query string) string {
	out, err := m.try("postgres", `psql -qXAth 127.0.0.1 -c "`+query+`"`)
	if err != nil {
		return "error: " + out
	}
	return out
}

func (p *postgres) urls(c *cluster) []string {
	if p.bouncer {
		return []string{"postgres://postgres@" + c.proxy.ip + ":6432/postgres?connect_timeout=2"}
	}
	return []string{postgresURL(c)}
}

func postgresURL(c *cluster) string {
	var hosts []string
	for _, m := range c.machines {
		hosts = append(hosts, m.ip)
	}
	return "postgres://postgres@" + strings.Join(hosts, ",") + "/postgres?connect_timeout=2"
}

func (p *postgres) write(m *machine) error {
	_, err := m.try("postgres", writeProbe)
	return err
}

// promote gives the place of the primary to the standby that has most of its log, as
// an administrator does who looks after a second.
func (p *postgres) promote(c *cluster) {
	c.pause(time.Second)
	var best *machine
	most := ""
	for _, m := range c.living() {
		if m == c.primary {
			continue
		}
		got := p.ask(m, "select lpad(to_hex((pg_last_wal_receive_lsn() - '0/0')::bigint), 16, '0')")
		if c.logf("%s has received %s", m.name, got); best == nil || got > most {
			best, most = m, got
		}
	}
	c.run(best, "postgres", postgresBin+"pg_ctl promote -w -D "+best.dir+"/data")
	old := c.primary
	c.primary = best
	for _, m := range c.living() {
		switch {
		case m == best:
		case m == old: // demoted
			c.run(m, "postgres", "touch "+m.dir+"/data/standby.signal")
			p.serve(c, m)
		default: // what the command line says comes first
			c.run(m, "postgres", postgresBin+"pg_ctl stop -m fast -D "+m.dir+"/data")
			p.serve(c, m)
		}
	}
	if p.wait == "FIRST 1" && old.dead { // nobody is left to wait for
		p.ask(best, "alter system reset synchronous_standby_names")
		p.ask(best, "select pg_reload_conf()")
	}
	if p.bouncer {
		p.configure(c)
		c.run(c.proxy, "postgres", "kill -HUP $(cat "+c.proxy.dir+"/pid)")
	}
}

// demote ends the primary, which sends its standbys all before.
func (p *postgres) demote(c *cluster) {
	c.run(c.primary, "postgres", postgresBin+"pg_ctl stop -m fast -D "+c.primary.dir+"/data")
	p.promote(c)
}

// bounce starts PgBouncer.
func (p *postgres) bounce(c *cluster) {
	p.configure(c)
	c.serve(c.proxy, "postgres", "/usr/sbin/pgbouncer bouncer.ini")
	c.until(startTime, "PgBouncer answers", func() bool {
		_, err := c.proxy.try("postgres", "psql -qXh 127.0.0.1 -p 6432 -c 'select 1'")
		return err == nil
	})
}

func (p *postgres) configure(c *cluster) {
	c.file(c.proxy, "bouncer.ini", fmt.Sprintf(`[databases]
postgres = host=%s user=postgres
[pgbouncer]
listen_addr = *
listen_port = 6432
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 30
max_client_conn = 400
server_connect_timeout = 2
server_login_retry = 1
idle_transaction_timeout = 10
pidfile = pid
`, c.primary.ip))
}

// patroni is postgres with Patroni and etcd on each machine.
type patroni struct {
	postgres
	strict bool // synchronous_mode and synchronous_mode_strict
}

func (p *patroni) start(c *cluster) {
	var peers, clients []string
	for _, m := range c.machines {
		peers = append(peers, fmt.Sprintf("%s=http://%s:2380", m.name, m.ip))
		clients = append(clients, m.ip+":2379")
	}
	for _, m := range c.machines {
		c.serve(m, "postgres", fmt.Sprintf(`/usr/bin/etcd --name %[1]s --data-dir etcd --enable-v2 --listen-peer-urls http://%[2]s:2380
			--initial-advertise-peer-urls http://%[2]s:2380 --listen-client-urls http://%[2]s:2379 --advertise-client-urls http://%[2]s:2379
			--initial-cluster %[3]s`, m.name, m.ip, strings.Join(peers, ",")))
	}
	for _, m := range c.machines {
		c.file(m, "patroni.yml", fmt.Sprintf(`scope: state
name: %[1]s
restapi: {listen: "%[2]s:8008", connect_address: "%[2]s:8008"}
etcd3: {hosts: [%[3]s]}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 5
    retry_timeout: 5
    synchronous_mode: %[4]v
    synchronous_mode_strict: %[4]v
    postgresql: {use_pg_rewind: true, parameters: {max_connections: 300, wal_log_hints: "on", wal_keep_size: 256MB}}
  initdb: [{auth: trust}, no-sync]
  pg_hba: ["local all all trust", "host all,replication all 0.0.0.0/0 trust"]
postgresql:
  listen: "*:5432"
  connect_address: "%[2]s:5432"
  data_dir: %[5]s/data
  bin_dir: %[6]s
  pgpass: %[5]s/pgpass
  parameters: {unix_socket_directories: %[5]s}
  authentication: {superuser: {username: postgres, password: x}, replication: {username: postgres, password: x}}
`, m.name, m.ip, strings.Join(clients, ", "), p.strict, m.dir, postgresBin))
		c.serve(m, "postgres", "/usr/bin/patroni patroni.yml")
	}
	c.until(startTime, "all machines are in the cluster", func() bool {
		c.findPrimary(func(m *machine) bool { return p.ask(m, "select pg_is_in_recovery()") == "f" })
		return c.primary != nil && p.ask(c.primary, "select count(*) from pg_stat_replication") == "2" &&
			(!p.strict || p.ask(c.primary, "select current_setting('synchronous_standby_names') not in ('', '*')") == "t")
	})
}

// findPrimary looks for the primary.
func (c *cluster) findPrimary(is func(m *machine) bool) {
	for _, m := range c.living() {
		if is(m) {
			c.primary = m
		}
	}
}

func (p *patroni) promote(*cluster) {}

func (p *patroni) demote(c *cluster) {
	c.run(c.primary, "postgres", "cd "+c.primary.dir+" && patronictl -c patroni.yml switchover --force")
}
