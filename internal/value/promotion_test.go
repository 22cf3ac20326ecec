//lint:file-ignore U1000 Fields that cannot be set need not be used.

package value_test

//lint:file-ignore U1000 The tests are about fields that nothing uses.

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/value"
)

type (
	// coded has methods that a struct which embeds it gets as well.
	coded struct{ ID string }

	promoted struct {
		coded
		Name string
	}
	promotedPointer struct {
		*time.Time
		Name string
	}
	promotedText struct {
		netip.Addr
		Port int
	}
	promotedDeep struct {
		promoted
		More int
	}
	promotedHidden struct {
		coded
		name string
	}

	forwards struct {
		coded
		Name string
	}
	declared struct {
		coded
		Name string
	}
	declaredPointer struct {
		*coded
		Name string
	}
	declaredHidden struct {
		coded
		name string
	}
	declaredNested struct {
		coded
		Parts []map[string]*declared
	}
	wrapper struct{ coded }
)

func (c coded) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]string{"id": c.ID}) }
func (c *coded) UnmarshalJSON(b []byte) error {
	var m map[string]string
	err := json.Unmarshal(b, &m)
	c.ID = m["id"]
	return err
}

func (f forwards) MarshalJSON() ([]byte, error)  { return f.coded.MarshalJSON() }
func (f *forwards) UnmarshalJSON(b []byte) error { return f.coded.UnmarshalJSON(b) }

// A declared method writes what the embedded one does, unless there is a name.
func writeNamed(id, name string) ([]byte, error) {
	m := map[string]string{"id": id}
	if name != "" {
		m["name"] = name
	}
	return json.Marshal(m)
}

func (d declared) MarshalJSON() ([]byte, error)  { return writeNamed(d.ID, d.Name) }
func (d *declared) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &map[string]any{}) }

func (d declaredPointer) MarshalJSON() ([]byte, error)  { return writeNamed(d.ID, d.Name) }
func (d *declaredPointer) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &map[string]any{}) }

func (d declaredHidden) MarshalJSON() ([]byte, error)  { return json.Marshal([]string{d.ID, d.name}) }
func (d *declaredHidden) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &[]string{}) }

func (d declaredNested) MarshalJSON() ([]byte, error) {
	for _, part := range d.Parts {
		for _, p := range part {
			return p.MarshalJSON()
		}
	}
	return d.coded.MarshalJSON()
}
func (d *declaredNested) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &map[string]any{}) }

func TestAMethodThatWritesOnlyAnEmbeddedFieldIsRefused(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[promoted](), reflect.TypeFor[promotedPointer](), reflect.TypeFor[promotedText](),
		reflect.TypeFor[promotedDeep](), reflect.TypeFor[promotedHidden](), reflect.TypeFor[forwards](),
	} {
		_, err := value.For(typ)
		require.ErrorContains(t, err, "is that of an embedded field: the other fields would be lost", typ)
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[declared](), reflect.TypeFor[declaredHidden](), reflect.TypeFor[declaredNested](),
		reflect.TypeFor[wrapper](), reflect.TypeFor[coded](),
	} {
		_, err := value.For(typ)
		require.NoError(t, err, typ)
	}
	_, err := value.For(reflect.TypeFor[declaredPointer]())
	require.ErrorContains(t, err, "would be lost", "the pointer cannot be set, so that neither method can write")
}
