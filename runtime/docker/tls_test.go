package docker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// authority makes certificates in a directory as docker wants them: ca.pem, cert.pem, key.pem, the
// same for both sides.
func authority(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(
			time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0,
			1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pemCert := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	write(t, filepath.Join(dir, "ca.pem"), pemCert)
	write(t, filepath.Join(dir, "cert.pem"), pemCert)
	write(t, filepath.Join(dir, "key.pem"),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
}

// TestTLS: both sides are verified, for requests and for what is attached.
func TestTLS(t *testing.T) {
	home := alone(t)
	ours, others := filepath.Join(home, "ours"), filepath.Join(home, "others")
	authority(t, ours)
	authority(t, others)
	pair, err := tls.LoadX509KeyPair(filepath.Join(ours, "cert.pem"), filepath.Join(ours, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(ours, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	l, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool,
			ClientAuth: tls.RequireAndVerifyClientCert})
	if err != nil {
		t.Fatal(err)
	}
	f := newFake()
	f.instant = true
	s := &http.Server{Handler: f}
	go s.Serve(l)
	defer s.Close()
	meta := func(host string, skip bool) string {
		b, err := json.Marshal(map[string]any{"Endpoints": map[string]any{"docker": map[string]any{"Host": host,
			"SkipTLSVerify": skip}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	address := l.Addr().String()
	id := writeContext(t, filepath.Join(home, ".docker"), "safe", meta("tcp://"+address, false))
	authorityCopy(t, ours, filepath.Join(home, ".docker", "contexts", "tls", id, "docker"))
	id = writeContext(t, filepath.Join(home, ".docker"), "careless", meta("tcp://"+address, true))
	authorityCopy(t, ours, filepath.Join(home, ".docker", "contexts", "tls", id, "docker"))
	if err := os.Remove(filepath.Join(home, ".docker", "contexts", "tls", id, "docker", "ca.pem")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		env  map[string]string
		ok   bool
	}{
		{"cert path", map[string]string{"DOCKER_HOST": "tcp://" + address, "DOCKER_CERT_PATH": ours,
			"DOCKER_TLS_VERIFY": "1"}, true},
		{"cert path, https", map[string]string{"DOCKER_HOST": "https://" + address, "DOCKER_CERT_PATH": ours},
			true},
		{"another authority, verified without being asked",
			map[string]string{"DOCKER_HOST": "tcp://" + address, "DOCKER_CERT_PATH": others}, false},
		{"no certificates", map[string]string{"DOCKER_HOST": "tcp://" + address}, false},
		{"verification without certificates",
			map[string]string{"DOCKER_HOST": "tcp://" + address, "DOCKER_TLS_VERIFY": "1"}, false},
		{"another name", map[string]string{"DOCKER_HOST": "tcp://" +
			strings.Replace(address, "127.0.0.1", "localhost", 1), "DOCKER_CERT_PATH": ours}, false},
		{"context", map[string]string{"DOCKER_CONTEXT": "safe"}, true},
		{"a context that skips verification", map[string]string{"DOCKER_CONTEXT": "careless"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for k, v := range tt.env {
				t.Setenv(k, v)
			}
			d := New(Config{})
			defer d.Close()
			exit, out, err := play(t, t.Context(), d)
			var un *runtime.UnavailableError
			switch {
			case tt.ok && (err != nil || exit.Code != 7 || out != "out"):
				t.Errorf("got %+v, %q, %v", exit, out, err)
			case tt.ok:
				facts, err := d.Facts(t.Context())
				if said := strings.Contains(strings.Join(facts.Lacks, " "), "not verified"); err != nil ||
					!facts.Remote || said != strings.Contains(tt.name, "skips") {
					t.Errorf("facts are %+v, %v", facts, err)
				}
			case !tt.ok && (!errors.As(err, &un) || un.Hint() == ""):
				t.Errorf("got %v, want an *UnavailableError with a hint", err)
			}
			if !tt.ok {
				t.Logf("%v; %s", err, un.Hint())
			}
		})
	}
}

func authorityCopy(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range []string{"ca.pem", "cert.pem", "key.pem"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(to, name), string(b))
	}
}
