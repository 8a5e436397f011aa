/** What spans and metrics are exported with. */
export interface ServiceNames {
  readonly serviceName: string;
  /** Empty for none. */
  readonly serviceNamespace: string;
  /** A random UUID when absent. */
  readonly serviceInstanceId?: string | undefined;
  readonly version: string;
}

/** The attributes of the resource, whichever worker exports it. */
export function resourceOf(names: ServiceNames): Record<string, string> {
  const { serviceName, serviceNamespace, serviceInstanceId, version } = names;
  return {
    "service.name": serviceName,
    ...(serviceNamespace === "" ? {} : { "service.namespace": serviceNamespace }),
    "service.instance.id": serviceInstanceId ?? crypto.randomUUID(),
    "service.version": version,
  };
}
