module github.com/agentstate/state/lab/fronts

go 1.26.0

require (
	github.com/agentstate/state v0.1.0
	github.com/agentstate/state/adapter/aguistate v0.1.0
	github.com/agentstate/state/adapter/aisdkstate v0.1.0
	github.com/chromedp/chromedp v0.23.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/chromedp/cdproto v0.160.0 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace (
	github.com/agentstate/state => ../..
	github.com/agentstate/state/adapter/aguistate => ../../adapter/aguistate
	github.com/agentstate/state/adapter/aisdkstate => ../../adapter/aisdkstate
	github.com/agentstate/state/store/sqlitestore => ../../store/sqlitestore
	github.com/agentstate/state/store/sqlstore => ../../store/sqlstore
)
