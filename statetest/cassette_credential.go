package statetest

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// credentials are what the requests of a cassette had to prove who sends them,
// with the place of each.
type credentials struct{ places map[string]string }

// minCredential is the length in bytes below which a value proves nothing and
// would be found in any text.
const minCredential = 6

func (c *credentials) add(value, place string) {
	if value = strings.TrimSpace(value); len(value) < minCredential {
		return
	}
	if c.places == nil {
		c.places = map[string]string{}
	}
	if c.places[value] == "" {
		c.places[value] = place
	}
}

// collect adds what a request has.
func (c *credentials) collect(r *http.Request) {
	for name, values := range r.Header {
		lower := strings.ToLower(name)
		place := "the header " + name
		for _, value := range values {
			switch {
			case lower == "authorization" || lower == "proxy-authorization":
				scheme, rest, ok := strings.Cut(strings.TrimSpace(value), " ")
				if !ok {
					rest = scheme
				}
				c.add(rest, place)
			case strings.HasSuffix(lower, "api-key"):
				c.add(value, place)
			}
		}
	}
	if _, password, ok := r.BasicAuth(); ok {
		c.add(password, "the header Authorization")
	}
	if r.URL.User != nil {
		password, _ := r.URL.User.Password()
		c.add(password, "the password of the URL")
	}
	for _, cookie := range r.Cookies() {
		c.add(cookie.Value, "the cookie "+cookie.Name)
	}
	for _, value := range r.URL.Query()["key"] {
		c.add(value, "the parameter key")
	}
}

// find returns the place of a value that a text has, in any form that NoLeak
// finds, or "".
func (c *credentials) find(text string) string {
	values := slices.Sorted(maps.Keys(c.places))
	leaves := make([]leaf, len(values))
	for i, value := range values {
		leaves[i] = leaf{text: value}
	}
	finds, complete := newFinder(leaves).find(text)
	switch {
	case len(finds) > 0:
		return c.places[values[finds[0].value]]
	case !complete && len(values) > 0:
		return "perhaps a key: it has a part that decodes to too much to be searched"
	}
	return ""
}

// mask masks the values in the text of a failure.
func (c *credentials) mask(text string) string {
	for _, value := range slices.SortedFunc(maps.Keys(c.places), func(a, b string) int { return len(b) - len(a) }) {
		text = strings.ReplaceAll(text, value, "[SECRET]")
		text = strings.ReplaceAll(text, url.QueryEscape(value), "[SECRET]")
	}
	return text
}
