package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/docker/go-units"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// progress turns what the engine says of a pull, hundreds of messages for each layer, into lines:
// one for each layer that is there, and at most ten for the download as a whole, or a few more
// where layers join it late.
type progress struct {
	to     runtime.Progress
	layers map[string]download
	tenths int64 // of all bytes known of, as last told
}

type download struct{ have, all int64 }

// message is one of the stream's.
type message struct {
	ID             string `json:"id"`
	Status         string `json:"status"`
	ProgressDetail struct {
		Current, Total int64
	} `json:"progressDetail"`
	Error       string `json:"error"`
	ErrorDetail struct {
		Message string `json:"message"`
	} `json:"errorDetail"`
}

// follow reads a stream of messages to its end and closes it. A message that is an error is the
// error.
func (p *progress) follow(stream io.ReadCloser, err error) error {
	if err != nil {
		return err
	}
	defer stream.Close()
	for dec := json.NewDecoder(stream); ; {
		var m message
		err := dec.Decode(&m)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the engine's account broke off: %w", err)
		case m.ErrorDetail.Message != "":
			return errors.New(m.ErrorDetail.Message)
		case m.Error != "":
			return errors.New(m.Error)
		}
		p.take(m)
	}
}

func (p *progress) take(m message) {
	switch m.Status {
	case "Downloading":
		p.downloading(m)
	case "Pull complete", "Already exists":
		p.say("layer " + m.ID + ": " + strings.ToLower(m.Status))
	default:
		if strings.HasPrefix(m.Status, "Status:") || strings.HasPrefix(m.Status, "Digest:") {
			p.say(m.Status)
		}
	}
}

func (p *progress) downloading(m message) {
	if p.layers == nil {
		p.layers = map[string]download{}
	}
	p.layers[m.ID] = download{m.ProgressDetail.Current, m.ProgressDetail.Total}
	var sum download
	for _, l := range p.layers {
		sum.have += l.have
		sum.all += l.all
	}
	if sum.all <= 0 {
		return
	}
	if tenths := 10 * sum.have / sum.all; tenths > p.tenths {
		p.tenths = tenths
		p.say(fmt.Sprintf("downloaded %s of %s", units.HumanSize(float64(sum.have)),
			units.HumanSize(float64(sum.all))))
	}
}

func (p *progress) say(line string) {
	if line = runtime.OneLine(line); line != "" && p.to != nil {
		p.to(line)
	}
}
