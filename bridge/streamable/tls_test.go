package streamable_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/mcp-bridge/mcp-bridge/bridge/streamable"
)

// certificate returns the files of a certificate for localhost and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotAfter: time.Now().AddDate(100, 0, 0),
	}, &x509.Certificate{SerialNumber: big.NewInt(1)}, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for kind, content := range map[string][]byte{"CERTIFICATE": der, "PRIVATE KEY": raw} {
		file := filepath.Join(t.TempDir(), "pem")
		err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if kind == "CERTIFICATE" {
			cert = file
		} else {
			key = file
		}
	}
	return cert, key
}

// peer is a client of HTTP/2 that does as it is told.
type peer struct {
	conn   net.Conn
	frames *http2.Framer
	writes chan func() error // in their order
}

// dialTLS begins a connection that gives the server a window for each answer.
func dialTLS(t *testing.T, p *pipes, window uint32) *peer {
	t.Helper()
	c := tls.Client(p.dial(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	x := &peer{c, http2.NewFramer(c, c), make(chan func() error, 100)}
	t.Cleanup(func() { close(x.writes) })
	go func() {
		for write := range x.writes {
			_ = write() // reading tells why it fails
		}
	}()
	x.writes <- func() error {
		return x.frames.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	}
	return x
}

// send sends a request as one stream.
func (x *peer) send(stream uint32, method, body string, headers ...string) {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, header := range append([]string{
		":method: " + method, ":scheme: https", ":authority: localhost", ":path: /mcp",
		"content-type: application/json",
	}, headers...) {
		at := strings.Index(header[1:], ": ") + 1
		_ = encoder.WriteField(hpack.HeaderField{Name: strings.ToLower(header[:at]), Value: header[at+2:]})
	}
	x.writes <- func() error {
		return x.frames.WriteHeaders(http2.HeadersFrameParam{
			StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: body == "",
		})
	}
	if body != "" {
		x.writes <- func() error { return x.frames.WriteData(stream, true, []byte(body)) }
	}
}

// ended reads until a stream is reset, or the connection has ended, and returns how.
func (x *peer) ended(stream uint32) error {
	for {
		f, err := x.frames.ReadFrame()
		if err != nil {
			return err
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				x.writes <- x.frames.WriteSettingsAck
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				x.writes <- func() error { return x.frames.WritePing(true, f.Data) }
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == stream {
				return nil
			}
		}
	}
}

// TestNoWindow: a peer of HTTP/2 that takes no byte of an answer, with a token or without, is given
// up after half a minute.
func TestNoWindow(t *testing.T) {
	cert, key := certificate(t)
	synctest.Test(t, func(t *testing.T) {
		_, p, end := bubbleOver(t, echo, cert, key, byHeader)
		for name, headers := range map[string][]string{
			"without a token": nil,
			"with one":        append(standard("tools/call", "run_python"), "x-who: alice"),
		} {
			x := dialTLS(t, p, 0)
			began := time.Now()
			x.send(1, http.MethodPost, run(1, "echo", metaOf("")), headers...)
			if err := x.ended(1); err != nil || time.Since(began) > 35*time.Second {
				t.Errorf("%s: it ended after %v: %v", name, time.Since(began), err)
			}
			x.conn.Close()
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestDeafPeer: a connection of HTTP/2 whose peer reads nothing is given up after half a minute.
func TestDeafPeer(t *testing.T) {
	cert, key := certificate(t)
	synctest.Test(t, func(t *testing.T) {
		_, p, end := bubbleOver(t, echo, cert, key)
		x := dialTLS(t, p, 1<<20)
		x.send(1, http.MethodPost, run(1, "echo", metaOf("")), standard("tools/call", "run_python")...)
		time.Sleep(time.Minute) // of the bubble
		began := time.Now()
		_, _ = io.Copy(io.Discard, x.conn)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the connection went on for %v", took)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestOriginOverTLS: a page that came unencrypted is another origin.
func TestOriginOverTLS(t *testing.T) {
	cert, key := certificate(t)
	synctest.Test(t, func(t *testing.T) {
		_, p, end := bubbleOver(t, echo, cert, key)
		for origin, want := range map[string]int{"http://localhost": 403, "https://localhost": 200} {
			c := tls.Client(p.dial(), &tls.Config{InsecureSkipVerify: true})
			body := run(1, "echo", metaOf(""))
			fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s\r\n"+
				"Origin: %s\r\nContent-Length: %d\r\n\r\n%s", strings.Join(standard("tools/call", "run_python"), "\r\n"),
				origin, len(body), body)
			line := make([]byte, 12)
			if _, err := io.ReadFull(c, line); err != nil || string(line) != fmt.Sprint("HTTP/1.1 ", want) {
				t.Errorf("%s: %q %v", origin, line, err)
			}
			c.Close()
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestRenewed: connections have the certificate that is in the files when they begin, and the one
// before while what is there can't be used.
func TestRenewed(t *testing.T) {
	cert, key := certificate(t)
	s := serveBridge(t, echo)
	p := newPipes()
	h := streamable.New(streamable.Config{Clients: s.bridge.Clients(), Hosts: streamable.Loopback})
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, p, cert, key) }()
	shown := func() string {
		t.Helper()
		c := tls.Client(p.dial(), &tls.Config{InsecureSkipVerify: true})
		defer c.Close()
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		return string(c.ConnectionState().PeerCertificates[0].Raw)
	}
	replace := func(path, by string) {
		t.Helper()
		text, err := os.ReadFile(by)
		if err == nil {
			err = os.WriteFile(path+".new", text, 0o600)
		}
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	first := shown()
	otherCert, otherKey := certificate(t)
	replace(cert, otherCert)
	if shown() != first {
		t.Error("a certificate is shown whose key isn't there")
	}
	replace(key, otherKey)
	second := shown()
	if second == first {
		t.Error("the certificate that was renewed isn't shown")
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if shown() != second {
		t.Error("a certificate whose key was removed isn't shown any more")
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
