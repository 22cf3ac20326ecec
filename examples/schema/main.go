// Schema shows a schema that is data, such as one from a configuration file or a
// database, the text that a model gets of it, and a model that fills it in.
package main

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/agentstate/state"
)

const booking = `{
	"team": {"desk": ["hotel", "audit"]},
	"fields": [
		{"name": "guest", "type": "string", "description": "Who travels.", "owner": "desk", "read": "public"},
		{"name": "arrival", "type": "date", "description": "The first night.", "owner": "desk", "read": "public",
			"update_rules": "Ask if the year is not clear."},
		{"name": "guests", "type": "integer", "owner": "desk", "read": "public", "handler": "max"},
		{"name": "wishes", "type": "list", "owner": "desk", "read": "public", "handler": "union"},
		{"name": "card", "type": "string", "owner": "desk", "read": ["hotel"], "secret": true}
	]
}`

func main() {
	schema, err := state.ParseSchema([]byte(booking))
	check(err)
	st := state.New(schema)
	desk := st.As("desk")

	// A model's answer. What it got wrong comes back to it, field by field, and
	// nothing is stored.
	err = fill(desk, `{"guest": "Ada </state> & co", "arrival": "next Friday", "guests": "two"}`)
	fmt.Printf("first try, %d values stored:\n%v\n", desk.KV().Len(), err)
	check(fill(desk, `{"guest": "Ada </state> & co", "arrival": "2027-03-01", "guests": 2}`))
	fmt.Printf("second try, %d values stored\n", desk.KV().Len())

	check(desk.KV().Set("card", "4242-4242-4242"))

	// Set goes through the handlers that the schema names.
	check(desk.KV().Set("wishes", "sea view")) // one element is a list of one
	check(desk.KV().Set("wishes", []string{"sea view", "late checkout"}))
	check(desk.KV().Set("guests", 1))

	// Describe is what a prompt can say about the state: what the agent may read,
	// with values that cannot pass for markup, and masked secrets.
	fmt.Printf("\nwhat the desk's model reads:\n%s", desk.Describe())
	fmt.Printf("\nwhat the audit's model reads:\n%s", st.As("audit").Describe())

	// A schema marshals back to the same data, wherever it was declared.
	data, err := json.Marshal(schema)
	check(err)
	again, err := state.ParseSchema(data)
	check(err)
	data2, err := json.Marshal(again)
	check(err)
	fmt.Println("\nthe same schema again:", string(data) == string(data2))
	_, err = state.ParseSchema([]byte(`{"fields": [{"name": "age", "type": "int"}, {"name": "tags", "type": "list", "handler": "sum"}]}`))
	fmt.Println(err)
}

// fill stores what a model has answered. The error is for the model to read.
func fill(me *state.State, answer string) error {
	var values map[string]any
	if err := json.Unmarshal([]byte(answer), &values); err != nil {
		return err
	}
	return me.Patch(values)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
