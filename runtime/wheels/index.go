package wheels

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/text"
)

// pypiFiles is the host of PyPI's files, which locks name by their absolute URLs.
const pypiFiles = "files.pythonhosted.org"

// simple is what pages of an index are asked for: JSON, or else HTML.
const simple = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"

// maxPage bounds an index's page about one package.
const maxPage = 64 << 20

// stallAfter is how long a server may send nothing.
const stallAfter = time.Minute

// locate returns the URL of a wheel: the lock's, or for a file of PyPI what c.Index says. Whatever
// that is, its content must have the lock's hash.
func (c *Cache) locate(ctx context.Context, w Chosen) (string, error) {
	locked, err := url.Parse(w.URL)
	if err != nil {
		return "", err
	}
	index, err := url.Parse(strings.TrimSuffix(c.Index, "/") + "/" + w.Name + "/")
	if err != nil {
		return "", fmt.Errorf("the URL of the index can't be read (UV_DEFAULT_INDEX, PIP_INDEX_URL)")
	}
	if c.Index == "" || index.Host == "pypi.org" || locked.Host != pypiFiles {
		return w.URL, nil
	}
	var page bytes.Buffer
	base, _, err := c.get(ctx, index.String(), simple, maxPage, &page)
	if err != nil {
		return "", err
	}
	for _, link := range links(page.Bytes()) {
		u, err := base.Parse(link)
		if err != nil || path.Base(u.Path) != w.File {
			continue
		}
		if u.Host == index.Host && u.Scheme == index.Scheme && u.User == nil {
			u.User = index.User
		}
		return u.String(), nil
	}
	return "", &text.HintError{Err: fmt.Errorf("the index at %s doesn't have it", index.Host),
		Next: "lock again with that index; where PyPI can be reached, unset UV_DEFAULT_INDEX, UV_INDEX_URL and" +
			" PIP_INDEX_URL instead"}
}

var linkPattern = regexp.MustCompile(`(?i)<a\s[^>]*?href\s*=\s*["']([^"']+)["']`)

// links returns the URLs on an index's page, which is JSON (PEP 691) or HTML (PEP 503).
func links(page []byte) (all []string) {
	var list struct {
		Files []struct{ URL string }
	}
	if json.Unmarshal(page, &list) == nil {
		for _, f := range list.Files {
			all = append(all, f.URL)
		}
		return all
	}
	for _, m := range linkPattern.FindAllSubmatch(page, -1) {
		all = append(all, html.UnescapeString(string(m[1])))
	}
	return all
}

// get copies what is at address to w, limit bytes at most. It returns where that was found after
// redirects, and its size. A server that sends nothing for a while is given up.
func (c *Cache) get(ctx context.Context, address, accept string, limit int64, w io.Writer) (
	found *url.URL, size int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clock := time.AfterFunc(stallAfter, func() { cancel(fmt.Errorf("nothing came for %v", stallAfter)) })
	defer clock.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("its URL can't be used")
	}
	req.Header.Set("User-Agent", "mcp-bridge")
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := cmp.Or(c.Client, http.DefaultClient).Do(req)
	if err != nil {
		return nil, 0, unreachable(ctx, req.URL.Host, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, 0, refused(req.URL.Host, resp.StatusCode)
	}
	body := watched{resp.Body, func() { clock.Reset(stallAfter) }, func(err error) error {
		return unreachable(ctx, req.URL.Host, err)
	}}
	size, err = io.Copy(w, io.LimitReader(body, limit))
	return resp.Request.URL, size, err
}

// watched reads, calls before each time, and explains errors.
type watched struct {
	r       io.Reader
	before  func()
	explain func(error) error
}

func (w watched) Read(p []byte) (int, error) {
	w.before()
	n, err := w.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = w.explain(err)
	}
	return n, err
}

// unreachable says why a server couldn't be reached, without the URL, which may have a password.
func unreachable(ctx context.Context, host string, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(cause, context.Canceled) {
		return cause
	} else if cause != nil {
		err = cause
	}
	if inURL, ok := errors.AsType[*url.Error](err); ok {
		err = inURL.Err
	}
	e := &text.HintError{Err: fmt.Errorf("%s can't be reached: %w", host, err),
		Next: "check that this machine is online and reaches " + host + "; behind a proxy set HTTPS_PROXY," +
			" for a mirror of PyPI UV_DEFAULT_INDEX or PIP_INDEX_URL. What is built already works offline"}
	if errors.As(err, new(x509.UnknownAuthorityError)) {
		e.Next = "set SSL_CERT_FILE to a file with the certificates that your network uses, as for uv"
	}
	return e
}

// refused says what an answer other than 200 means.
func refused(host string, status int) error {
	const login = "put the login into the URL of the index: https://USER:PASSWORD@HOST/simple"
	next := map[int]string{
		http.StatusNotFound:          "the file was removed from there: lock again",
		http.StatusUnauthorized:      login,
		http.StatusForbidden:         login,
		http.StatusProxyAuthRequired: "put the login into HTTPS_PROXY: http://USER:PASSWORD@HOST:PORT",
	}[status]
	return &text.HintError{Err: fmt.Errorf("%s answered %d %s", host, status, http.StatusText(status)),
		Next: cmp.Or(next, "try again later")}
}
