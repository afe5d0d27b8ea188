// Peers that the host is measured against. Each serves Databases of the whole cluster until it is ended, and prints
// "ready" once it watches:
//
//	post     the floor: one watch, then three blind writes for each object (Pod, Service, status)
//	apply    the same with children by create-only server-side apply
//	full     the floor of the host's own calls: the Secret for mysql by POST, create-only applies, status by apply, an Event
//	repair   the floor of a repair: one watch on Pods, and what goes is posted again
//	runtime  an operator on controller-runtime, written as kubebuilder's scaffold would have it
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

var databaseKind = schema.GroupVersionKind{Group: "zalando.org", Version: "v1", Kind: "Database"}

func main() {
	workers := flag.Int("workers", 8, "objects in work at one time")
	flag.Parse()
	cfg := ctrl.GetConfigOrDie()
	cfg.QPS, cfg.Burst = -1, 1000 // no limit of the client's own
	ctx := ctrl.SetupSignalHandler()
	serve, ok := map[string]func(context.Context, *rest.Config, int) error{
		"post": post, "apply": apply, "full": full, "repair": repair, "runtime": controllerRuntime,
	}[flag.Arg(0)]
	if !ok {
		log.Fatalf("no such peer: %q", flag.Arg(0))
	}
	if err := serve(ctx, cfg, *workers); err != nil {
		log.Fatal(err)
	}
}

func ready() { fmt.Println("ready") }

// What a Database runs.
type engine struct {
	name, image string
	port        int32
	env         []corev1.EnvVar
}

func engineOf(db *unstructured.Unstructured) engine {
	if kind, _, _ := unstructured.NestedString(db.Object, "spec", "type"); kind == "mysql" {
		return engine{"mysql", "mysql:8.0", 3306, []corev1.EnvVar{{Name: "MYSQL_ROOT_PASSWORD", Value: "not-a-secret"}}}
	}
	return engine{"mongo", "mongo:4.0", 27017, nil}
}

func message(db *unstructured.Unstructured) string {
	return "Pod and Service created by Database " + db.GetName()
}

func labels(db *unstructured.Unstructured) map[string]string {
	return map[string]string{"app": "db", "instance": db.GetName()}
}

func (e engine) podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: e.name, Image: e.image, Env: e.env}}}
}

func (e engine) serviceSpec(db *unstructured.Unstructured) corev1.ServiceSpec {
	return corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: labels(db),
		Ports: []corev1.ServicePort{{Port: e.port, TargetPort: intstr.FromInt32(e.port)}}}
}

func owner(db *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(db, databaseKind)}
}
