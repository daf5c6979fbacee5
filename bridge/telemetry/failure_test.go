package telemetry

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// partial is an answer in protobuf that takes not all, in those words.
func partial(words string) []byte {
	field := func(number byte, text []byte) []byte {
		return append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(text))), text...)
	}
	return field(1, field(2, []byte(words)))
}

// TestCollectorsWords: what a collector says isn't logged, however it says it, for it may be what
// it was sent; what it means is.
func TestCollectorsWords(t *testing.T) {
	const secret = "s3cr3t-key"
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, tt := range []struct {
		name, want string
		answer     func(w http.ResponseWriter, heard string)
	}{
		{"refusal", "answered with status 400", func(w http.ResponseWriter,
			heard string) {
			http.Error(w, heard, http.StatusBadRequest)
		}},
		{"reason", "answered with status 418", func(w http.ResponseWriter, heard string) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 418 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", heard)
			_ = conn.Close()
		}},
		{"no HTTP", "no more is shown", func(w http.ResponseWriter, heard string) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = fmt.Fprintf(conn, "%s\r\n\r\n", heard)
			_ = conn.Close()
		}},
		{"in part", "not taken all", func(w http.ResponseWriter, heard string) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = w.Write(partial(heard))
		}},
		{"no listener", "connection refused", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url := gone.URL
			if tt.answer != nil {
				collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					tt.answer(w, r.Header.Get("X-Api-Key"))
				}))
				defer collector.Close()
				url = collector.URL
			}
			vars := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_HEADERS": "x-api-key=" +
				secret}
			var logged bytes.Buffer
			tel := unsent(t, vars, slog.New(slog.NewTextHandler(&logged, nil)))
			said := fmt.Sprintf("%v %s", tel.Close(t.Context()), &logged)
			if strings.Contains(said, secret) || strings.Count(said, tt.want) != 2 {
				t.Errorf("got %s, want %q of spans and of measurements, and no key", said, tt.want)
			}
		})
	}
}

// TestFailures: the errors that take longer to come about than a test.
func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{errors.New("traces export: max retry time elapsed: retry-able request failure: body: s3cr3t"),
			"takes nothing now"},
		{fmt.Errorf("traces export: %w", errors.Join(context.DeadlineExceeded, errors.New("s3cr3t"))), "in time"},
		{fmt.Errorf("x: %w", &tls.CertificateVerificationError{Err: errors.New("it is of another host")}),
			"another host"},
		{errors.New("s3cr3t"), "no more is shown"},
	} {
		if got := failure(tt.err).Error(); strings.Contains(got, "s3cr3t") || !strings.Contains(got, tt.want) {
			t.Errorf("%v: got %s", tt.err, got)
		}
	}
}
