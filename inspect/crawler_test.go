package inspect_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// crawled is a page that the crawler has seen.
type crawled struct {
	target string
	response
}

// crawl follows every link and form of method GET from some pages on,
// and asks for each page as JSON too. It returns all answers, in the order in
// which they were found, at most limit.
func crawl(t testing.TB, h http.Handler, limit int, targets ...string) []crawled {
	t.Helper()
	seen := map[string]bool{}
	var pages []crawled
	for len(targets) > 0 && len(pages) < limit {
		target := targets[0]
		targets = targets[1:]
		if seen[target] {
			continue
		}
		seen[target] = true
		page := crawled{target, get(t, h, target)}
		pages = append(pages, page)
		if location := page.header.Get("Location"); location != "" {
			targets = append(targets, resolve(t, target, location))
		}
		if !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") || page.code >= 500 {
			continue
		}
		for _, link := range linksOf(t, page.body) {
			if link = resolve(t, target, link); strings.HasPrefix(link, "/") {
				targets = append(targets, link)
			}
		}
		targets = append(targets, with(t, target, "format", "json"))
	}
	return pages
}

// resolve returns the path and query that a link leads to.
func resolve(t testing.TB, target, link string) string {
	t.Helper()
	base, err := url.Parse(target)
	require.NoError(t, err)
	to, err := base.Parse(link)
	require.NoError(t, err, "%q on %s", link, target)
	if to.Host != "" {
		return to.String()
	}
	return to.RequestURI()
}

// with returns a target with another parameter, and without format.
func with(t testing.TB, target, name, value string) string {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	query := u.Query()
	query.Del("format")
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}

// linksOf returns the addresses in a page: of links, files and forms of method
// GET with their first values.
func linksOf(t testing.TB, body string) []string {
	t.Helper()
	var links []string
	for n := range parse(t, body).Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		for _, name := range []string{"href", "src"} {
			if link := attribute(n, name); link != "" && !strings.HasPrefix(link, "#") {
				links = append(links, link)
			}
		}
		if n.Data == "form" && attribute(n, "method") == "get" {
			query := url.Values{}
			for field := range n.Descendants() {
				if name := attribute(field, "name"); field.Data == "input" && name != "" {
					query.Set(name, attribute(field, "value"))
				}
			}
			for field := range n.Descendants() {
				if field.Data != "select" {
					continue
				}
				for option := range field.Descendants() {
					if option.Data == "option" && option.FirstChild != nil {
						query.Set(attribute(field, "name"), option.FirstChild.Data)
						links = append(links, attribute(n, "action")+"?"+query.Encode())
					}
				}
				query.Del(attribute(field, "name"))
			}
			links = append(links, attribute(n, "action")+"?"+query.Encode())
		}
	}
	return links
}

func parse(t testing.TB, body string) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(body))
	require.NoError(t, err)
	return doc
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
