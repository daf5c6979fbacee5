//go:build conformance

package client

import "context"

// Notify sends a notification that belongs to the request.
func (r *Request) Notify(ctx context.Context, method string, params any) error {
	return r.out.Notify(ctx, method, params)
}

// Params returns the parameters as they came.
func (r *Request) Params() []byte { return r.rpc.Params }

// Method returns the method.
func (r *Request) Method() string { return r.rpc.Method }
