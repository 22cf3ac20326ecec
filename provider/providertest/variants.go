package providertest

import (
	"reflect"
	"slices"
)

// variants returns copies of a message in which one value is replaced, emptied
// or removed.
func variants[M any](m M) (all []M) {
	for i := 0; ; i++ {
		for k := 0; ; k++ {
			v := &varier{at: i, change: k}
			copied := reflect.New(reflect.TypeFor[M]()).Elem()
			copied.Set(v.copy(reflect.ValueOf(&m).Elem()))
			if !v.reached {
				return all
			}
			if v.exhausted {
				break
			}
			all = append(all, copied.Interface().(M))
		}
	}
}

// texts that a codec may take for something else.
var variedTexts = []string{"", "x <b>", `{"a": 1}`, `{"a":1`, "null", "[]", `"x"`, "data:image/png;base64,aGk="}

// varier copies a value and makes one change in it, at the value that it comes to
// after at others.
type varier struct {
	at, change int
	reached    bool // whether there is such a value
	exhausted  bool // whether it has no further change
}

// copy returns a copy of a value.
func (v *varier) copy(from reflect.Value) reflect.Value {
	to := reflect.New(from.Type()).Elem()
	if to.Set(from); v.at == 0 {
		v.reached, v.at = true, -1
		v.vary(to)
		return to
	}
	v.at--
	switch from.Kind() {
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			to.Elem().Set(v.copy(from.Elem()))
		}
	case reflect.Interface:
		if !from.IsNil() {
			to.Set(v.copy(from.Elem()))
		}
	case reflect.Struct:
		for i := range from.NumField() {
			if from.Type().Field(i).IsExported() {
				to.Field(i).Set(v.copy(from.Field(i)))
			}
		}
	case reflect.Slice:
		if !from.IsNil() {
			to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
		}
		for i := range from.Len() {
			to.Index(i).Set(v.copy(from.Index(i)))
		}
	case reflect.Map:
		if from.IsNil() {
			break
		}
		to.Set(reflect.MakeMap(from.Type()))
		keys := from.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int {
			if a.Kind() != reflect.String || a.String() == b.String() {
				return 0
			}
			if a.String() < b.String() {
				return -1
			}
			return 1
		})
		for _, key := range keys {
			to.SetMapIndex(key, v.copy(from.MapIndex(key)))
		}
	}
	return to
}

// vary changes a value.
func (v *varier) vary(to reflect.Value) {
	var changes []func()
	switch to.Kind() {
	case reflect.String:
		for _, text := range variedTexts {
			changes = append(changes, func() { to.SetString(text) })
		}
	case reflect.Bool:
		changes = append(changes, func() { to.SetBool(!to.Bool()) })
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		changes = append(changes, func() { to.SetInt(0) }, func() { to.SetInt(7) })
	case reflect.Float32, reflect.Float64:
		changes = append(changes, func() { to.SetFloat(0) }, func() { to.SetFloat(1.5) })
	case reflect.Slice:
		if n := to.Len(); n > 0 {
			changes = append(changes, func() { to.SetZero() }, func() { to.Set(to.Slice(0, n-1)) }, func() { to.Set(reflect.AppendSlice(to.Slice(0, n), to)) })
		}
	case reflect.Pointer:
		if to.IsNil() {
			changes = append(changes, func() { to.Set(reflect.New(to.Type().Elem())) })
		} else {
			changes = append(changes, func() { to.SetZero() }, func() { to.Set(reflect.New(to.Type().Elem())) })
		}
	case reflect.Map:
		changes = append(changes, func() { to.SetZero() }, func() { to.Set(reflect.MakeMap(to.Type())) })
	case reflect.Interface:
		if to.NumMethod() == 0 {
			for _, value := range []any{nil, "x", 7.0, object{"y": array{true, nil}}} {
				changes = append(changes, func() {
					if to.SetZero(); value != nil {
						to.Set(reflect.ValueOf(value))
					}
				})
			}
		}
	}
	// A change that changes nothing does no harm.
	if v.change >= len(changes) {
		v.exhausted = true
		return
	}
	changes[v.change]()
}
