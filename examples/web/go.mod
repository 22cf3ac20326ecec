module github.com/agentstate/state/examples/web

go 1.26.0

require (
	github.com/agentstate/state v0.1.0
	github.com/agentstate/state/adapter/aguistate v0.1.0
	github.com/agentstate/state/store/sqlitestore v0.1.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/agentstate/state/store/sqlstore v0.1.0 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
	modernc.org/libc v1.80.1 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
	modernc.org/sqlite v1.62.0 // indirect
)

replace (
	github.com/agentstate/state => ../..
	github.com/agentstate/state/adapter/aguistate => ../../adapter/aguistate
	github.com/agentstate/state/store/sqlitestore => ../../store/sqlitestore
	github.com/agentstate/state/store/sqlstore => ../../store/sqlstore
)
