#!/usr/bin/env bash
# MariaDB acknowledges commits that no replica has when somebody ends the session that waits for one. A primary with
# semi-synchronous replication, AFTER_SYNC and an endless time limit has no replica. KILL of a waiting session ends
# its connection, and makes all others succeed whose transactions were committed in one group with it; KILL QUERY
# makes the statement itself succeed. No client gets an error or a warning. The guess was that KILL is about one
# session, and that a statement that is killed fails.
#
# Seen on 2026-11-28 on Debian 12 with mariadb-server-core and mariadb-client-core 1:10.11.19-0+deb12u1.
set -euo pipefail

packages='mariadb-server-core@1:10.11.19-0+deb12u1 mariadb-client-core@1:10.11.19-0+deb12u1 libmariadb3@1:10.11.19-0+deb12u1'
packages+=' libaio1@0.3.113-4 liburing2@2.3-3 libnuma1@2.0.16-1 libedit2@3.1-20221030-2 libncurses6@6.4-4'
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || { kill -9 "$server"; wait "$server" || true; } 2>/dev/null; rm -rf -- "$folder"' EXIT
cd -- "$folder"
{
	apt-get update
	apt-get download ${packages//@/=}
} >get.log 2>&1 || {
	cat get.log >&2
	exit 1
}
for package in *.deb; do dpkg -x "$package" root; done
lib=$(echo "$folder"/root/usr/lib/*-linux-gnu)
export LD_LIBRARY_PATH=$lib:${lib/usr\/}
bin=$folder/root/usr/bin share=$folder/root/usr/share/mysql
"$folder"/root/usr/sbin/mariadbd --version

mkdir data
{
	printf '%s;\n' 'create database mysql' 'create database test' 'use mysql'
	cat "$share/mysql_system_tables.sql"
} >boot.sql
options=(--no-defaults "--user=$(id -un)" "--datadir=$folder/data" "--lc-messages-dir=$share" "--socket=$folder/socket")
"$folder"/root/usr/sbin/mariadbd "${options[@]}" --bootstrap <boot.sql >boot.log 2>&1 || {
	cat boot.log >&2
	exit 1
}
"$folder"/root/usr/sbin/mariadbd "${options[@]}" --skip-networking --skip-grant-tables --log-bin=log --server-id=1 \
	--rpl-semi-sync-master-timeout=86400000 --rpl-semi-sync-master-wait-point=AFTER_SYNC >server.log 2>&1 &
server=$!

sql() { "$bin/mariadb" --no-defaults "--socket=$folder/socket" --skip-column-names test -e "$1"; }
for _ in $(seq 100); do
	sql 'select 1' >try.log 2>&1 && break
	sleep 0.2
done
sql 'create table t (a int primary key) engine=innodb; set global rpl_semi_sync_master_enabled=1'

# waiting prints the session that waits for a replica.
waiting() {
	local id
	for _ in $(seq 100); do
		id=$(sql "select id from information_schema.processlist where state like 'Waiting for semi-sync%'")
		[ -z "$id" ] || break
		sleep 0.1
	done
	echo "$id"
}

# Forty clients insert a row each. Whoever waits for a replica is ended, one after another.
clients=()
for n in $(seq 40); do
	sql "insert into t values ($n); select 'success, warnings:', @@warning_count" >"told$n" 2>&1 &
	clients+=($!)
done
ended=0
for _ in $(seq 40); do
	id=$(sql "select id from information_schema.processlist where state like 'Waiting for semi-sync%' limit 1")
	[ -n "$id" ] || break
	sql "kill $id" && ended=$((ended + 1))
	sleep 0.3
done
wait "${clients[@]}" || true
lost=$(cat told* | grep -c 'ERROR 2013' || true) succeeded=$(cat told* | grep -c 'success, warnings:.0$' || true)
echo "KILL: ended $ended; $lost clients lost the connection, $succeeded succeeded without a warning"

sql "insert into t values (99); select 'success, warnings:', @@warning_count" >told99 2>&1 &
client=$!
sql "kill query $(waiting)"
wait "$client" || true
query=$(tr '\t' ' ' <told99)
echo "KILL QUERY: $query"
acknowledged=$(sql "show status like 'Rpl_semi_sync_master_yes_tx'" | grep -o '[0-9]*$')
echo "replicas have acknowledged $acknowledged"
[ "$lost" = "$ended" ] && [ "$succeeded" -gt 0 ] && [ "$query" = 'success, warnings: 0' ] && [ "$acknowledged" = 0 ] || {
	echo 'it has changed' >&2
	exit 1
}
