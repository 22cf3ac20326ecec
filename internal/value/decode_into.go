package value

import (
	"reflect"
	"strconv"

	"github.com/agentstate/state/internal/jsontext"
)

// DecodeInto stores JSON in dst, a settable value of the plan's type, as Decode
// returns it without limits. data must have passed [jsontext.Check] and must
// not begin with space.
//
// Most arguments and outputs of tools are scalars. Those in the spelling that
// AppendJSON uses are stored directly, without a tree and without a copy.
func (p *Plan) DecodeInto(dst reflect.Value, data []byte) error {
	if p.scalar && len(data) > 0 {
		switch kind := dst.Kind(); {
		case kind == reflect.String && data[0] == '"':
			dst.SetString(jsontext.Unquote(data))
			return nil
		case kind == reflect.Bool && (data[0] == 't' || data[0] == 'f'):
			dst.SetBool(data[0] == 't')
			return nil
		case dst.CanInt():
			if n, err := strconv.ParseInt(string(data), 10, 64); err == nil && !dst.OverflowInt(n) {
				dst.SetInt(n)
				return nil
			}
		}
	}
	v, _, err := p.Decode(data, Limits{})
	if err == nil {
		dst.Set(v)
	}
	return err
}
