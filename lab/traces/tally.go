package traces

// Tally counts bodies. A body is good if it was decoded, and with
// Options.Verify if it is equal after it was encoded again.
type Tally struct{ All, Good int }

func (t *Tally) add(o Tally) {
	t.All += o.All
	t.Good += o.Good
}

// count counts a body, which is good if it has no errors.
func (t *Tally) count(errs []error) {
	t.All++
	if len(errs) == 0 {
		t.Good++
	}
}

// Counts are numbers by name.
type Counts map[string]int

func (c *Counts) add(name string, n int) {
	if *c == nil {
		*c = Counts{}
	}
	(*c)[name] += n
}

func (c *Counts) addAll(o Counts) {
	for name, n := range o {
		c.add(name, n)
	}
}

// Way is the way of a conversation from one provider's format to another's, or
// to its own.
type Way struct{ From, To string }

// Carriage counts the conversations that went a way: repaired for the provider,
// encoded, decoded and checked.
type Carriage struct {
	All       int
	Changed   int    // how many transcript.Repair changed
	Cut       int    // of how many the format could not express a part
	Lost      int    // of how many nothing is left of a message of the user
	Changes   Counts // by transcript.Change.Rule
	Omissions Counts // by provider.Omission.What
}

func (c *Carriage) add(o Carriage) {
	c.All += o.All
	c.Changed += o.Changed
	c.Cut += o.Cut
	c.Lost += o.Lost
	c.Changes.addAll(o.Changes)
	c.Omissions.addAll(o.Omissions)
}

// Vendor counts the exchanges with a vendor.
type Vendor struct {
	Exchanges int
	Refused   Tally
	False     int
	Models    Counts
}

func (v *Vendor) add(o Vendor) {
	v.Exchanges += o.Exchanges
	v.Refused.add(o.Refused)
	v.False += o.False
	v.Models.addAll(o.Models)
}

// sum adds the values of a map to those of another, which it makes if there is
// none.
func sum[K comparable, V any](into *map[K]V, from map[K]V, add func(*V, V)) {
	if *into == nil && len(from) > 0 {
		*into = map[K]V{}
	}
	for k, o := range from {
		v := (*into)[k]
		add(&v, o)
		(*into)[k] = v
	}
}

// NoteKind is the kind of a Note.
type NoteKind int

const (
	NoteStream     NoteKind = iota // a stream that is not whole
	NoteRefused                    // a request that the provider refused, with its words
	NoteUnanswered                 // a request without an answer, which has another reason
	NoteFinding                    // what Check finds in a conversation of which it is not known whether a provider accepted it
)

// Note is something in a file that is no failure, and worth a look.
type Note struct {
	Kind NoteKind
	Path string // in the file
	Who  string // the vendor and the model, as far as they are known
	Text string
	Good bool // of a refusal: transcript.Check foresaw it
}
