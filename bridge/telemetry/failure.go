package telemetry

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"regexp"
	"strings"
)

// answered finds the status in what the exporters say of an answer that is a refusal; its reason
// and its body come after it.
var answered = regexp.MustCompile(`failed to send (?:metrics )?to \S+: (\d{3})\b`)

// putOff and partly begin what they say of two other answers, before the collector's words.
const (
	putOff = "retry-able request failure: body: "
	partly = "OTLP partial success: "
)

// failure returns why something was not sent, in no words of the collector: these may repeat what
// it was sent, with its key in the headers. What isn't known to hold none is not shown.
func failure(err error) error {
	var certificate *tls.CertificateVerificationError
	var connection *net.OpError
	text := err.Error()
	switch m := answered.FindStringSubmatch(text); {
	case m != nil:
		return errors.New("the collector answered with status " + m[1])
	case strings.Contains(text, putOff):
		return errors.New("the collector answered that it takes nothing now (status 429, 502, 503 or 504)")
	case strings.Contains(text, partly):
		return errors.New("the collector has not taken all of it")
	case errors.As(err, &certificate):
		return certificate
	case errors.As(err, &connection):
		return connection
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("the collector did not answer in time")
	}
	return errors.New("something else went wrong, of which no more is shown: it may hold what was sent; see " +
		"whether OTEL_EXPORTER_OTLP_ENDPOINT is a collector's, and what that logs")
}
