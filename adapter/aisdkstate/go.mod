module github.com/agentstate/state/adapter/aisdkstate

go 1.26.0

require (
	github.com/agentstate/state v0.1.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/google/jsonschema-go v0.4.3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace (
	github.com/agentstate/state => ../..
	github.com/agentstate/state/store/sqlitestore => ../../store/sqlitestore
	github.com/agentstate/state/store/sqlstore => ../../store/sqlstore
)
