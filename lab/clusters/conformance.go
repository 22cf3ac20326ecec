package main

import (
	"os"
	"os/exec"
	"strings"
)

// test runs the tests that every store must pass, those of package storetest, on the
// cluster. Clients of Galera are on all nodes at once.
func (c *cluster) test() {
	urls := c.engine.urls(c)
	variable, folder, tests := "STATE_TEST_POSTGRES="+urls[0], "../store/sqlstore", "^TestPostgres$"
	switch engine := c.engine.(type) {
	case *mariadb:
		variable, tests = "STATE_TEST_MYSQL=mysql://root@"+c.primary.ip+"/state", "^TestMySQL$"
	case *galera:
		var nodes []string
		for _, m := range c.machines {
			nodes = append(nodes, "mysql://root@"+m.ip+"/state")
		}
		variable, tests = "STATE_TEST_GALERA="+strings.Join(nodes, " "), "^TestGalera$"
		if engine.clients == "haproxy" {
			variable, tests = "STATE_TEST_MYSQL=mysql://root@"+c.proxy.ip+"/state", "^TestMySQL$"
		}
	case *sentinel:
		variable, folder, tests = "STATE_TEST_REDIS=redis://"+c.primary.ip+":6379/0", "../store/redisstore", "^TestStore$"
	case *redisCluster: // it starts its own
		variable, folder, tests = "STATE_TEST_REDIS=", "../store/redisstore", "^TestCluster$"
	}
	cmd := exec.Command("go", "-C", folder, "test", "-count=1", "-run", tests, ".")
	cmd.Env = append(os.Environ(), variable, "STATE_TEST_REQUIRE=postgres,mysql,redis")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	c.logf("%s %s", variable, tests)
	c.note(cmd.Run())
}
