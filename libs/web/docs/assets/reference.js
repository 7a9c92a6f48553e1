/* global Scalar */
const place = document.getElementById('scalar');

const configuration = {
  url: place.dataset.document,
  // Requests go to the host that the page was loaded from.
  baseServerURL: location.origin,
  // The links of the search use the same slugs.
  generateTagSlug: ({ name }) => name.toLowerCase().replaceAll(' ', '-'),
  generateOperationSlug: ({ operationId, method, path }) => operationId ?? `${method}${path}`,
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
  defaultOpenFirstTag: true,
  documentDownloadType: 'none',
};

place.replaceChildren();
Scalar.createApiReference(place, configuration);
