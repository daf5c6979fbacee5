package main

import (
	"context"
	"os"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/bridge/telemetry"
)

// startTelemetry begins to export what the OTEL_* variables ask for. A mistake in them keeps nobody from working.
func (p *parts) startTelemetry() {
	t, err := telemetry.Start(context.Background(), telemetry.Config{Name: bridge.Name, Version: version(), Getenv: os.Getenv, Log: p.log})
	if err != nil {
		p.log.Warn("no traces and metrics are exported", "err", err)
	}
	p.telemetry = t
}

// closeTelemetry sends what is left. A collector that isn't there is no failure of the program.
func (p *parts) closeTelemetry() {
	if p.telemetry == nil {
		return
	}
	if err := p.telemetry.Close(context.Background()); err != nil {
		p.log.Warn("the last traces or metrics were not sent", "err", err)
	}
}
