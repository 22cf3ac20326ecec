package inspect

import (
	"errors"

	"github.com/agentstate/state/inspect/internal/safetext"
	"github.com/agentstate/state/workspace"
)

// integrityData is the data of the page that verifies a workspace.
type integrityData struct {
	Asked   bool              `json:"asked"` // to verify
	Intact  bool              `json:"intact"`
	Report  *workspace.Report `json:"report,omitempty"`
	Problem string            `json:"problem,omitempty"`
}

// integrity verifies a workspace if the parameter verify asks for it. It is also
// shown for a workspace that is damaged.
func (h *Handler) integrity(c *call) (*page, error) {
	head, err := c.summary()
	var known *httpError
	if errors.As(err, &known) {
		return nil, err
	}
	data := integrityData{Asked: c.query.Get("verify") != ""}
	if err != nil {
		head = newHead(c.user, workspace.Summary{Err: err})
		_, data.Problem = explain(err)
	}
	if data.Asked {
		report, err := h.manager.Verify(c.ctx(), c.user)
		if err != nil {
			_, data.Problem = explain(err)
		} else {
			data.Intact, data.Report = true, &report
		}
		for i, key := range report.Keys {
			report.Keys[i] = safetext.Visible(key, false)
		}
	}
	data.Problem = safetext.Visible(data.Problem, false)
	return &page{Name: "integrity", Title: "Integrity", Tab: "integrity", Data: data, Head: head}, nil
}
