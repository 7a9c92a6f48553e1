/* global Scalar */
const place = document.getElementById('scalar');

const configuration = {
  url: place.dataset.document,
  // Requests go to the host that the page is from, whatever it is called.
  baseServerURL: location.origin,
  // As the links of the search have them.
  generateTagSlug: ({ name }) => name.toLowerCase().replaceAll(' ', '-'),
  generateOperationSlug: ({ operationId, method, path }) => operationId ?? `${method}${path}`,
  // Nothing from elsewhere, and nothing that belongs to somebody else's service.
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  // The search at the top finds operations and guides.
  hideSearch: true,
  searchHotKey: undefined,
  // Our samples and no generated ones.
  hiddenClients: true,
  authentication: { preferredSecurityScheme: 'token' },
  // A token is forgotten with the page: what is stored here, every script of this origin can read.
  persistAuth: false,
  // As the device has it.
  hideDarkModeToggle: true,
  defaultOpenFirstTag: true,
  documentDownloadType: 'none',
};

place.replaceChildren();
Scalar.createApiReference(place, configuration);
