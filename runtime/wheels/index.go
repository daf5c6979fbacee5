package wheels

import (
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
)

// pypiFiles is the host of PyPI's files, which locks name by their absolute URLs.
const pypiFiles = "files.pythonhosted.org"

// maxPage bounds an index's page about one package.
const maxPage = 64 << 20

// stallAfter is how long a server may send nothing.
const stallAfter = time.Minute

// IndexFrom returns the index that uv or pip is told to use by environment variables, or "".
func IndexFrom(getenv func(string) string) string {
	named := getenv("UV_DEFAULT_INDEX") // which can have a name: company=https://…
	if name, address, found := strings.Cut(named, "="); found && !strings.Contains(name, "/") {
		named = address
	}
	return cmp.Or(named, getenv("UV_INDEX_URL"), getenv("PIP_INDEX_URL"))
}

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
	body, err := c.get(ctx, index.String(), "application/vnd.pypi.simple.v1+json, text/html;q=0.5")
	if err != nil {
		return "", err
	}
	defer body.Close()
	page, err := io.ReadAll(io.LimitReader(body, maxPage))
	if err != nil {
		return "", err
	}
	for _, link := range links(page) {
		u, err := body.url.Parse(link)
		if err != nil || path.Base(u.Path) != w.File {
			continue
		}
		if u.Host == index.Host && u.User == nil {
			u.User = index.User
		}
		return u.String(), nil
	}
	return "", &Error{Err: fmt.Errorf("the index at %s doesn't have it", index.Host),
		Next: "lock again with that index, or unset UV_DEFAULT_INDEX, UV_INDEX_URL and PIP_INDEX_URL where PyPI can be reached"}
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

// defaultClient is used by a Cache without a client.
var defaultClient = &http.Client{Transport: func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = 30 * time.Second
	return t
}()}

// answer is the body of a response. Reading fails once the server has sent nothing for a while.
type answer struct {
	body io.ReadCloser
	url  *url.URL // where it came from, after redirects
	ctx  context.Context
	read func() // is called before each read
	end  func() // releases what the request holds
}

func (a *answer) Read(p []byte) (int, error) {
	a.read()
	n, err := a.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = unreachable(a.ctx, a.url.Host, err)
	}
	return n, err
}

// Close ends the request.
func (a *answer) Close() error {
	defer a.end()
	return a.body.Close()
}

func (c *Cache) get(ctx context.Context, address, accept string) (*answer, error) {
	stall := cmp.Or(c.stall, stallAfter)
	ctx, cancel := context.WithCancelCause(ctx)
	clock := time.AfterFunc(stall, func() { cancel(fmt.Errorf("nothing came for %v", stall)) })
	end := func() {
		clock.Stop()
		cancel(nil)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		end()
		return nil, fmt.Errorf("its URL can't be used")
	}
	req.Header.Set("User-Agent", "mcp-bridge")
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := cmp.Or(c.Client, defaultClient).Do(req)
	if err != nil {
		defer end()
		return nil, unreachable(ctx, req.URL.Host, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer end()
		return nil, errors.Join(refused(req.URL.Host, resp), resp.Body.Close())
	}
	return &answer{body: resp.Body, url: resp.Request.URL, ctx: ctx, end: end,
		read: func() { clock.Reset(stall) }}, nil
}

// unreachable says why a server couldn't be reached, without the URL, which may have a password.
func unreachable(ctx context.Context, host string, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(cause, context.Canceled) {
		return cause
	} else if cause != nil {
		err = cause
	}
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err
	}
	e := &Error{Err: fmt.Errorf("%s can't be reached: %w", host, err), Next: "check that this machine is online and" +
		" reaches " + host + "; behind a proxy set HTTPS_PROXY, for a mirror of PyPI UV_DEFAULT_INDEX or PIP_INDEX_URL." +
		" What is built already works offline"}
	var authority x509.UnknownAuthorityError
	if errors.As(err, &authority) {
		e.Next = "set SSL_CERT_FILE to a file with the certificates that your network uses, as for uv"
	}
	return e
}

// refused says what a response other than 200 means.
func refused(host string, resp *http.Response) error {
	e := &Error{Err: fmt.Errorf("%s answered %s", host, resp.Status), Next: "try again later"}
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		e.Next = "the file was removed from there: lock again"
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Next = "put the login into the URL of the index: https://USER:PASSWORD@HOST/simple"
	case http.StatusProxyAuthRequired:
		e.Next = "put the login into HTTPS_PROXY: http://USER:PASSWORD@HOST:PORT"
	}
	return e
}
