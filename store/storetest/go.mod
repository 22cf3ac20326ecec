module github.com/agentstate/state/store/storetest

go 1.25.0

require (
	github.com/agentstate/state v0.1.0
	github.com/anishathalye/porcupine v1.3.1
	github.com/stretchr/testify v1.12.1
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace github.com/agentstate/state => ../..
