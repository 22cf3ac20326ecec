#!/usr/bin/env bash
# A planned SENTINEL FAILOVER of a healthy Redis loses writes that it has acknowledged: the old master takes and
# acknowledges writes until Sentinel tells it that it is a replica, also with min-replicas-to-write 1, and throws them
# away. FAILOVER, a command of the server itself, pauses clients until the replica has everything, and loses none.
# The guess was that only the failover of a master that is dead loses writes, as with CLUSTER FAILOVER.
#
# Seen on 2026-11-28 on Debian 12 with redis-tools 5:7.0.15-1~deb12u10.
set -euo pipefail

packages='redis-tools@5:7.0.15-1~deb12u10 libjemalloc2@5.3.0-1 liblzf1@3.6-3'
folder=$(mktemp -d)
trap 'kill -9 $(jobs -p) 2>/dev/null || true; wait 2>/dev/null || true; rm -rf -- "$folder"' EXIT
cd -- "$folder"
{
	apt-get update
	apt-get download ${packages//@/=}
} >get.log 2>&1 || {
	cat get.log >&2
	exit 1
}
for package in *.deb; do dpkg -x "$package" root; done
LD_LIBRARY_PATH=$(echo "$folder"/root/usr/lib/*-linux-gnu)
export LD_LIBRARY_PATH
server=$folder/root/usr/bin/redis-check-rdb
cp "$server" redis-server # the program is one, and looks at its name
cli() { "$folder/root/usr/bin/redis-cli" "$@"; }
./redis-server --version

start() {
	for port in 7701 7702; do
		mkdir -p "$port"
		replica=()
		[ "$port" = 7701 ] || replica=(--replicaof 127.0.0.1 7701)
		(cd "$port" && exec ../redis-server --port "$port" --save '' --min-replicas-to-write 1 --min-replicas-max-lag 2 \
			--repl-diskless-sync-delay 0 "${replica[@]}" >>log) &
	done
	until cli -p 7701 info replication 2>/dev/null | grep -q 'state=online'; do sleep 0.1; done
	sleep 1
}
# lost COMMAND... counts up on the master while the command lets a replica take its place, and prints how many of
# the acknowledged numbers the new master does not have.
lost() {
	local acknowledged writer
	(while echo 'incr n'; do :; done) 2>/dev/null | timeout 30 "$folder/root/usr/bin/redis-cli" -p 7701 >answers 2>&1 &
	writer=$!
	sleep 1
	until cli -p 7702 role 2>&1 | head -n 1 | grep -q master; do
		"$@" >/dev/null 2>&1 || true # refused while one is under way
		sleep 0.2
	done
	until cli -p 7701 role 2>&1 | head -n 1 | grep -q slave; do sleep 0.05; done
	acknowledged=$(grep -oE '^[0-9]+$' answers | tail -n 1)
	kill "$writer" 2>/dev/null || true
	echo $((acknowledged - $(cli -p 7702 get n)))
}

# fresh starts a master and its replica without data.
fresh() {
	{
		kill -9 $(jobs -p)
		wait
	} 2>/dev/null || true
	rm -rf -- 7701 7702
	start
}

by_sentinel=0
for _ in $(seq 8); do # how many are lost depends on how soon Sentinel gets to the old master
	[ "$by_sentinel" = 0 ] || break
	fresh
	cat >sentinel.conf <<'CONF'
port 7703
sentinel monitor m 127.0.0.1 7701 1
sentinel down-after-milliseconds m 3000
CONF
	./redis-server sentinel.conf --sentinel >sentinel.log &
	until cli -p 7703 info sentinel 2>/dev/null | grep -q 'slaves=1'; do sleep 0.1; done
	by_sentinel=$((by_sentinel + $(lost cli -p 7703 sentinel failover m)))
done
fresh
by_server=$(lost cli -p 7701 failover)

echo "SENTINEL FAILOVER: $by_sentinel acknowledged writes are lost"
echo "FAILOVER: $by_server are lost"
[ "$by_sentinel" -gt 0 ] && [ "$by_server" = 0 ] || {
	echo 'it has changed' >&2
	exit 1
}
