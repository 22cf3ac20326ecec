#!/usr/bin/env bash
# MariaDB acknowledges a commit that no replica has when KILL QUERY ends its wait. A primary with semi-synchronous
# replication, AFTER_SYNC, an endless time limit and no replica lets an insert wait. KILL QUERY on that session, as
# administrators and drivers use it to end a statement, makes the insert a success for its client, without an
# error and without a warning; KILL ends the connection instead, and max_statement_time does not end the wait.
# The guess was that the statement fails, as any other that is killed.
#
# Seen on 2026-11-28 on Debian 12 with mariadb-server-core and mariadb-client-core 1:10.11.19-0+deb12u1.
set -euo pipefail

version=1:10.11.19-0+deb12u1
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || { kill -9 "$server"; wait "$server" || true; } 2>/dev/null; rm -rf -- "$folder"' EXIT
cd -- "$folder"
{
	apt-get update
	apt-get download "mariadb-server-core=$version" "mariadb-client-core=$version" libmariadb3 libaio1 liburing2 libnuma1 libedit2 libncurses6
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

# try NUMBER SETTING [KILL] inserts a row, lets it wait, ends the wait and says what the client was told.
try() {
	local id
	sql "$2 insert into t values ($1); select 'success, warnings:', @@warning_count" >"told$1" 2>&1 &
	local client=$!
	for _ in $(seq 100); do
		id=$(sql "select id from information_schema.processlist where state like 'Waiting for semi-sync%'")
		[ -z "$id" ] || break
		sleep 0.1
	done
	[ -z "$3" ] || sql "$3 $id"
	sleep 3
	if kill -0 "$client" 2>/dev/null; then
		echo 'still waits'
		sql "kill $id"
	fi
	wait "$client" || true
	grep -oE 'success, warnings:.*|ERROR [0-9]+' "told$1" || true
}
told=$(
	echo "KILL QUERY: $(try 1 '' 'kill query')"
	echo "KILL: $(try 2 '' 'kill')"
	echo "max_statement_time: $(try 3 'set max_statement_time=1;' '' | head -n 1)"
)
told=$(tr '\t' ' ' <<<"$told")
echo "$told"
want='KILL QUERY: success, warnings: 0
KILL: ERROR 2013
max_statement_time: still waits'
[ "$told" = "$want" ] || {
	echo 'the behaviour has changed' >&2
	exit 1
}
