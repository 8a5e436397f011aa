// The OTLP receiver of the OpenTelemetry Collector: prints a line for each export that it accepts.
package main

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func printTraces(_ context.Context, traces ptrace.Traces) error {
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				fmt.Println("span", span.Name())
			}
		}
	}
	return nil
}

func printMetrics(_ context.Context, metrics pmetric.Metrics) error {
	for _, resource := range metrics.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				fmt.Println("metric", metric.Name(), metric.Type())
			}
		}
	}
	return nil
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Usage: collector ADDRESS
func main() {
	ctx := context.Background()
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	server := configgrpc.NewDefaultServerConfig()
	server.NetAddr.Endpoint = os.Args[1]
	server.NetAddr.Transport = "tcp"
	config.Protocols.GRPC = configoptional.Some(server)
	settings := receivertest.NewNopSettings(factory.Type())
	traces := must(factory.CreateTraces(ctx, settings, config, must(consumer.NewTraces(printTraces))))
	metrics := must(factory.CreateMetrics(ctx, settings, config, must(consumer.NewMetrics(printMetrics))))
	host := componenttest.NewNopHost()
	if err := traces.Start(ctx, host); err != nil {
		panic(err)
	}
	if err := metrics.Start(ctx, host); err != nil {
		panic(err)
	}
	fmt.Println("ready")
	select {}
}
