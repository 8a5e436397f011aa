// A configuration server for the node "edge": go-control-plane with a snapshot cache. The first port serves it; a
// request of /set on the second one sets a version with one rule.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
)

func main() {
	snapshots := cache.NewSnapshotCache(true, cache.IDHash{}, nil)
	callbacks := server.CallbackFuncs{
		StreamRequestFunc: func(_ int64, request *discovery.DiscoveryRequest) error {
			fmt.Printf("%s|%s\n", request.VersionInfo, request.ErrorDetail.GetMessage())
			return nil
		},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	serving := grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(serving, server.NewServer(context.Background(), snapshots, callbacks))
	go serving.Serve(listener)
	http.HandleFunc("/set", func(_ http.ResponseWriter, request *http.Request) {
		number := func(name string) uint32 {
			value, _ := strconv.Atoi(request.FormValue(name))
			return uint32(value)
		}
		config := &ratelimit.RateLimitConfig{
			Name: "shop", Domain: "shop",
			Descriptors: []*ratelimit.RateLimitDescriptor{{
				Key: "open",
				RateLimit: &ratelimit.RateLimitPolicy{
					Unit: ratelimit.RateLimitUnit(number("unit")), RequestsPerUnit: number("limit"),
				},
			}},
		}
		snapshot, err := cache.NewSnapshot(request.FormValue("version"), map[resource.Type][]types.Resource{
			resource.RateLimitConfigType: {config},
		})
		if err != nil {
			panic(err)
		}
		if err := snapshots.SetSnapshot(context.Background(), "edge", snapshot); err != nil {
			panic(err)
		}
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[2], nil))
}
