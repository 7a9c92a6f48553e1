/* global Scalar */
/** Shows the one operation that the address names, so that its requests can be sent. The reference lists them all. */
const place = document.getElementById('scalar');
const id = new URLSearchParams(location.search).get('operation');
const leave = () => location.replace(`${document.body.dataset.root}/docs/reference`);

const configuration = {
  showSidebar: false,
  hideModels: true,
  // Requests go to the host that the page was loaded from.
  baseServerURL: location.origin,
  // Loads nothing from other servers.
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  // The search at the top finds operations and guides.
  hideSearch: true,
  searchHotKey: undefined,
  // Shows our samples instead of generated ones.
  hiddenClients: true,
  authentication: { preferredSecurityScheme: 'token' },
  // Does not store the token, because every script of this origin could read it.
  persistAuth: false,
  // The device's setting applies.
  hideDarkModeToggle: true,
  documentDownloadType: 'none',
};

fetch(place.dataset.document)
  .then((response) => response.json())
  .then((openapi) => {
    const content = selectOperation(openapi);
    if (!content) return leave();
    place.replaceChildren();
    Scalar.createApiReference(place, { ...configuration, content });
  })
  .catch(leave);

/** Selects the operation and its tag from the OpenAPI document; undefined when the address names none. */
function selectOperation({ paths, tags, ...rest }) {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const selected = operations.find(({ operation }) => operation.operationId === id);
  if (!selected) return undefined;
  const { path, method, operation } = selected;
  return {
    ...rest,
    info: { ...rest.info, title: operation.summary },
    webhooks: {},
    tags: tags.filter(({ name }) => operation.tags.includes(name)),
    paths: { [path]: { [method]: operation } },
  };
}
