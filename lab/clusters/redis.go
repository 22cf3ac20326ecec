package main

import (
	"fmt"
	"strings"
)

// sentinel is a Redis with two replicas, and a Sentinel on each machine.
type sentinel struct {
	minReplicas int // min-replicas-to-write, with a lag of 2 s
}

const redisServer = "/usr/bin/redis-server --bind 0.0.0.0 --protected-mode no --save '' --appendonly yes --repl-diskless-sync-delay 0"

// askRedis returns the answer to a command, or the error.
func askRedis(m *machine, command string) string {
	out, err := m.try("redis", "redis-cli "+command)
	if err != nil {
		return "error: " + out
	}
	return out
}

func (s *sentinel) start(c *cluster) {
	c.primary = c.machines[0]
	for _, m := range c.machines {
		text := fmt.Sprintf("%s --min-replicas-to-write %d --min-replicas-max-lag 2", redisServer, s.minReplicas)
		if m != c.primary {
			text += " --replicaof " + c.primary.ip + " 6379"
		}
		c.serve(m, "redis", text)
	}
	c.until(startTime, "the replicas follow", func() bool {
		return strings.Contains(askRedis(c.primary, "info replication"), "connected_slaves:2")
	})
	for _, m := range c.machines {
		c.file(m, "sentinel.conf", fmt.Sprintf("bind 0.0.0.0\nprotected-mode no\nsentinel monitor state %s 6379 2\n"+
			"sentinel down-after-milliseconds state 3000\nsentinel failover-timeout state 10000\n", c.primary.ip))
		c.local("chown redis " + m.dir + "/sentinel.conf")
		c.serve(m, "redis", "/usr/bin/redis-server sentinel.conf --sentinel")
	}
	c.until(startTime, "the Sentinels know each other", func() bool {
		return strings.Contains(askRedis(c.primary, "-p 26379 info sentinel"), "slaves=2,sentinels=3")
	})
}

func (s *sentinel) urls(c *cluster) []string {
	var hosts []string
	for _, m := range c.machines {
		hosts = append(hosts, m.ip+":26379")
	}
	return []string{"sentinel://" + strings.Join(hosts, ",")}
}

func (s *sentinel) write(m *machine) error {
	if out := askRedis(m, "set probe 1"); out != "OK" {
		return fmt.Errorf("%s: %s", m.name, out)
	}
	return nil
}

func (s *sentinel) promote(*cluster) {}

func (s *sentinel) demote(c *cluster) {
	c.run(c.machines[1], "redis", "redis-cli -p 26379 sentinel failover state")
}

// redisCluster has three masters and three replicas. The primary is the master of the
// store.
type redisCluster struct{}

func (r *redisCluster) start(c *cluster) {
	var hosts []string
	for _, m := range c.machines {
		c.serve(m, "redis", redisServer+" --cluster-enabled yes --cluster-node-timeout 3000")
		hosts = append(hosts, m.ip+":6379")
	}
	for _, m := range c.machines {
		c.until(startTime, m.name+" answers", func() bool { return askRedis(m, "ping") == "PONG" })
	}
	c.run(c.machines[0], "redis", "redis-cli --cluster create "+strings.Join(hosts, " ")+" --cluster-replicas 1 --cluster-yes")
	c.until(startTime, "all nodes know the cluster", func() bool {
		for _, m := range c.machines {
			if !strings.Contains(askRedis(m, "cluster info"), "cluster_state:ok") {
				return false
			}
			if r.write(m) == nil {
				c.primary = m
			}
		}
		return c.primary != nil && strings.Count(askRedis(c.machines[0], "cluster nodes"), " slave ") == 3
	})
}

// urls returns that of a node that is not about to fail.
func (r *redisCluster) urls(c *cluster) []string {
	for _, m := range c.living() {
		if m != c.primary {
			return []string{"redis://" + m.ip + ":6379/0"}
		}
	}
	return nil
}

// write writes what has the slot of the store.
func (r *redisCluster) write(m *machine) error {
	if out := askRedis(m, "set '{state:}probe' 1"); out != "OK" {
		return fmt.Errorf("%s: %s", m.name, out)
	}
	return nil
}

func (r *redisCluster) promote(*cluster) {}

func (r *redisCluster) demote(c *cluster) {
	id := askRedis(c.primary, "cluster myid")
	for _, m := range c.machines {
		if strings.Contains(askRedis(m, "cluster nodes | grep myself"), " slave "+id) {
			c.run(m, "redis", "redis-cli cluster failover")
		}
	}
}

// move moves the slot of the store to another master, key by key.
func (r *redisCluster) move(c *cluster) {
	from, slot := c.primary, askRedis(c.primary, "cluster keyslot '{state:}probe'")
	var to *machine
	for _, m := range c.machines {
		if m != from && strings.Contains(askRedis(m, "role"), "master") {
			to = m
		}
	}
	ids := [2]string{askRedis(from, "cluster myid"), askRedis(to, "cluster myid")}
	c.run(to, "redis", "redis-cli cluster setslot "+slot+" importing "+ids[0])
	c.run(from, "redis", "redis-cli cluster setslot "+slot+" migrating "+ids[1])
	moved := c.run(from, "redis", fmt.Sprintf(`n=0; while key=$(redis-cli cluster getkeysinslot %[1]s 1) && [ -n "$key" ]; do
		redis-cli migrate %[2]s 6379 "$key" 0 5000 >/dev/null && n=$((n + 1)); done; echo $n`, slot, to.ip))
	for _, m := range []*machine{to, from} {
		c.run(m, "redis", "redis-cli cluster setslot "+slot+" node "+ids[1])
	}
	c.logf("%s keys have moved from %s to %s", moved, from.name, to.name)
	c.primary = to
}
