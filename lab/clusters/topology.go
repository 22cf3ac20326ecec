package main

// topology is a kind of cluster.
type topology struct {
	name, about string
	packages    string
	programs    []string
	machines    int
	proxied     bool // by a machine between the clients and the others
	// keeps says that what was accepted is not lost.
	keeps  bool
	engine engine
}

// engine starts the servers of a cluster.
type engine interface {
	// start starts all, and sets the primary.
	start(c *cluster)
	// urls returns what clients connect to, one after another.
	urls(c *cluster) []string
	// write makes a write on a machine by the engine's own client.
	write(m *machine) error
	// promote is what an administrator does when the primary is dead. Most engines
	// need none.
	promote(c *cluster)
	// demote gives the place of the primary to another one.
	demote(c *cluster)
}

const (
	postgresPackages = "postgresql-15"
	mariadbPackages  = "mariadb-server galera-4 rsync"
)

var topologies = []topology{
	{"postgres-one", "one synchronous standby, promoted by hand", postgresPackages, []string{"pg_ctlcluster"}, 2, false, true, &postgres{wait: "FIRST 1"}},
	{"postgres", "two synchronous standbys (ANY 1), promoted by hand", postgresPackages, []string{"pg_ctlcluster"}, 3, false, true, &postgres{wait: "ANY 1"}},
	{"postgres-async", "two asynchronous standbys, promoted by hand", postgresPackages, []string{"pg_ctlcluster"}, 3, false, false, &postgres{}},
	{"pgbouncer", "postgres behind PgBouncer in transaction mode", postgresPackages + " pgbouncer", []string{"pgbouncer"}, 3, true, true, &postgres{wait: "ANY 1", bouncer: true}},
	{"patroni", "Patroni with etcd, synchronous_mode_strict", postgresPackages + " patroni etcd-server", []string{"patroni", "etcd"}, 3, false, true, &patroni{strict: true}},
	{"patroni-async", "Patroni with etcd, asynchronous", postgresPackages + " patroni etcd-server", []string{"patroni", "etcd"}, 3, false, false, &patroni{}},
	{"mariadb", "a replica of MariaDB, semi-sync without end, promoted by hand", mariadbPackages, []string{"mariadbd"}, 3, false, true, &mariadb{semisync: true}},
	{"mariadb-async", "an asynchronous replica of MariaDB, promoted by hand", mariadbPackages, []string{"mariadbd"}, 3, false, false, &mariadb{}},
	{"galera-one", "Galera, clients on one node", mariadbPackages, []string{"mariadbd", "rsync"}, 3, false, true, &galera{clients: "one"}},
	{"galera-all", "Galera, clients on all nodes, each with the others behind it", mariadbPackages, []string{"mariadbd", "rsync"}, 3, false, true, &galera{clients: "all"}},
	{"galera-haproxy", "Galera behind HAProxy, round robin", mariadbPackages + " haproxy", []string{"mariadbd", "haproxy", "rsync"}, 3, true, true, &galera{clients: "haproxy"}},
	{"sentinel", "Redis with Sentinel, min-replicas-to-write 1", "redis-server", []string{"redis-server"}, 3, false, false, &sentinel{minReplicas: 1}},
	{"sentinel-plain", "Redis with Sentinel", "redis-server", []string{"redis-server"}, 3, false, false, &sentinel{}},
	{"redis-cluster", "Redis Cluster, three masters and three replicas", "redis-server", []string{"redis-server"}, 6, false, false, &redisCluster{}},
}

// find returns the topology with a name, or nil.
func find(name string) *topology {
	for i := range topologies {
		if topologies[i].name == name {
			return &topologies[i]
		}
	}
	return nil
}
