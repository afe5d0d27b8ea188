package main

import (
	"context"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// The least that can be called a repair: one watch on Pods, and whatever goes is posted again as it was.
func repair(ctx context.Context, cfg *rest.Config, _ int) error {
	f := newFloor(cfg)
	watch, err := f.typed.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{LabelSelector: "app=db"})
	if err != nil {
		return err
	}
	ready()
	for event := range watch.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type != "DELETED" {
			continue
		}
		meta := metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: pod.Labels, OwnerReferences: pod.OwnerReferences}
		again := &corev1.Pod{ObjectMeta: meta, Spec: pod.Spec}
		if _, err := f.typed.CoreV1().Pods(pod.Namespace).Create(ctx, again, metav1.CreateOptions{}); err != nil {
			log.Print(err)
		}
	}
	return nil
}
