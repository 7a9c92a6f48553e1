type ErrorBody = {
  error?: unknown;
  errors?: unknown;
  resolution?: unknown;
  existing?: unknown;
  documentation_url?: unknown;
  request_id?: unknown;
};

export type ErrorDescription = { message: string; description: string; httpCode: string };

/** Describes a failed response for people: what is wrong, how to correct it, and where to read more. */
export function describeError(status: number, body: unknown): ErrorDescription {
  const { error, errors, existing, resolution, documentation_url, request_id }: ErrorBody =
    typeof body === 'object' && body !== null ? body : {};
  const lines = [
    ...(typeof resolution === 'string' ? [resolution] : []),
    ...describeFields(errors),
    ...describeExisting(existing),
    ...(typeof documentation_url === 'string' ? [`Read more: ${documentation_url}`] : []),
    ...(typeof request_id === 'string' ? [`Request id: ${request_id}`] : []),
  ];
  return {
    message:
      typeof error === 'string'
        ? error
        : `The response with status ${status} is not from Inkpad. Check the base URL of the credentials`,
    description: lines.join('\n'),
    httpCode: String(status),
  };
}

function describeFields(errors: unknown): string[] {
  if (typeof errors !== 'object' || errors === null) return [];
  return Object.entries(errors).flatMap(([field, messages]) => {
    if (!Array.isArray(messages)) return [];
    return messages.map((message) => (field === 'base' ? `${message}` : `${field} ${message}`));
  });
}

function describeExisting(existing: unknown): string[] {
  if (typeof existing !== 'object' || existing === null) return [];
  const { type, id }: { type?: unknown; id?: unknown } = existing;
  return [`The value belongs to the ${String(type).replaceAll('_', ' ')} with the ID ${id}.`];
}
