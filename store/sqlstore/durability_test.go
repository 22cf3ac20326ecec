package sqlstore

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

func TestDurabilityOfPostgres(t *testing.T) {
	for _, row := range []struct {
		fsync, commit, standbys string
		want                    store.Durability
	}{
		{"on", "on", "", store.DurabilityPower},
		{"on", "local", "", store.DurabilityPower},
		{"on", "off", "", store.DurabilityServer},
		{"off", "on", "", store.DurabilityServer},
		{"on", "on", "ANY 1 (a, b)", store.DurabilityFailover},
		{"on", "remote_apply", "*", store.DurabilityFailover},
		{"on", "remote_write", "*", store.DurabilityPower}, // in the memory of the standby
		{"on", "local", "*", store.DurabilityPower},
		{"on", "off", "*", store.DurabilityServer},
		{"off", "on", "*", store.DurabilityServer},
	} {
		require.Equal(t, row.want, postgresDurability(row.fsync, row.commit, row.standbys), "%+v", row)
	}
}

func TestDurabilityOfMySQL(t *testing.T) {
	synced := map[string]string{"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "1"}
	replica := map[string]string{"rpl_semi_sync_master_enabled": "ON", "rpl_semi_sync_master_wait_point": "AFTER_SYNC",
		"rpl_semi_sync_master_timeout": "18446744073709551615"}
	for name, row := range map[string]struct {
		with []map[string]string
		want store.Durability
	}{
		"alone":                  {nil, store.DurabilityPower},
		"log not flushed":        {[]map[string]string{{"innodb_flush_log_at_trx_commit": "2"}}, store.DurabilityServer},
		"binary log not synced":  {[]map[string]string{{"sync_binlog": "0"}}, store.DurabilityServer},
		"Galera":                 {[]map[string]string{{"wsrep_on": "ON"}}, store.DurabilityFailover},
		"Galera, not flushed":    {[]map[string]string{{"wsrep_on": "ON", "innodb_flush_log_at_trx_commit": "0"}}, store.DurabilityServer},
		"semi-sync":              {[]map[string]string{replica}, store.DurabilityFailover},
		"semi-sync for 10 s":     {[]map[string]string{replica, {"rpl_semi_sync_master_timeout": "10000"}}, store.DurabilityPower},
		"semi-sync, seen before": {[]map[string]string{replica, {"rpl_semi_sync_master_wait_point": "AFTER_COMMIT"}}, store.DurabilityPower},
		"semi-sync off":          {[]map[string]string{replica, {"rpl_semi_sync_master_enabled": "OFF"}}, store.DurabilityPower},
	} {
		variables := maps.Clone(synced)
		for _, more := range row.with {
			maps.Copy(variables, more)
		}
		require.Equal(t, row.want, mysqlDurability(variables), name)
	}
}
