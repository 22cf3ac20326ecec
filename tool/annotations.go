package tool

// Annotations are hints about what a tool does, as the ToolAnnotations of MCP,
// whose JSON they have. They are for people and clients, who must not trust
// those of tools from elsewhere. In this package, only ReadOnly has an effect:
// see [Run].
type Annotations struct {
	// Title is a name for people.
	Title string `json:"title,omitempty"`
	// ReadOnly says that the tool changes nothing outside the state. A stateful
	// function of such a tool is given a snapshot of the state.
	ReadOnly bool `json:"readOnlyHint,omitempty"`
	// Destructive says whether the tool may destroy something. Nil means yes,
	// unless ReadOnly is set.
	Destructive *bool `json:"destructiveHint,omitempty"`
	// Idempotent says that a repeated call with the same arguments changes
	// nothing more.
	Idempotent bool `json:"idempotentHint,omitempty"`
	// OpenWorld says whether the tool deals with things outside the program,
	// such as the web. Nil means yes.
	OpenWorld *bool `json:"openWorldHint,omitempty"`
}

func (a Annotations) clone() Annotations {
	a.Destructive, a.OpenWorld = cloneBool(a.Destructive), cloneBool(a.OpenWorld)
	return a
}

func cloneBool(b *bool) *bool {
	if b == nil {
		return nil
	}
	c := *b
	return &c
}
