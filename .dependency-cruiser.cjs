/** The ladder of libs, floor by floor: a lib may import only what stands before it. docs/architecture.md shows it. */
const LADDER = [
  'platform/kernel',
  'platform/database',
  'platform/event-store',
  'platform/http',
  'platform/operations',
  'configuration',
  'translations',
  'identity',
  'loyalty/cards',
  'loyalty/rewards',
  'loyalty/stamping',
  'loyalty/customers',
  'loyalty/locations',
  'loyalty/posters',
  'loyalty/accounts',
  'loyalty/history',
  'loyalty/exports',
  'loyalty/statistics',
  'loyalty/imports',
  'outbound/sending',
  'outbound/card-images',
  'outbound/messages',
  'outbound/transparency',
  'outbound/public-events',
  'outbound/subscriptions',
  'outbound/dispatch',
  'outbound/passes',
  'outbound/google-wallet',
  'outbound/apple-wallet',
  'outbound/campaigns',
  'outbound/geocoding',
  'web/pages',
  'web/sign-in',
  'web/admin-api',
  'web/counter',
  'web/web-card',
  'web/console',
  'web/poster-pages',
  'web/signup',
  'web/docs',
  'web/mcp',
];
const LIB = '^libs/';
const EVENTS = '[.]events[.]ts$';
const PURE_OUTSIDE = '^(node:)?(crypto|util|net|zlib|string_decoder)$';
/** Pure calculation published as packages. */
const PURE_PACKAGES =
  'node_modules/(bidi-js|fflate|harfbuzzjs|ipaddr[.]js|jose|libphonenumber-js|otpauth|(@types/)?qrcode)/';

const ladder = LADDER.map((lib, rung) => ({
  name: `ladder-${lib.replace('/', '-')}`,
  comment: `${lib} may import only libs before it in the ladder (events of any lib as types)`,
  severity: 'error',
  from: { path: `^libs/${lib}/` },
  to: {
    path: `^libs/(${LADDER.slice(rung + 1).join('|') || 'none'})/`,
    pathNot: EVENTS,
  },
}));

module.exports = {
  forbidden: [
    ...ladder,
    {
      name: 'no-circular',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'one-folder-knows-kurrentdb',
      comment: 'whatever an engine needs is a verb of the port (ADR-0012)',
      severity: 'error',
      from: {
        path: '^(libs|apps)/',
        pathNot: [
          '^libs/platform/event-store/(eventstoredb/|engine[.]ts$)',
          '^apps/cli/',
          '[.]spec[.]ts$',
        ],
      },
      to: {
        path: '^libs/platform/event-store/eventstoredb/',
        pathNot: '/connection-string[.]ts$',
      },
    },
    {
      name: 'no-app-imports',
      comment: 'apps are started, not imported',
      severity: 'error',
      from: { path: '^libs/', pathNot: '[.]spec[.]ts$' },
      to: { path: '^(apps|tools|test|bench)/' },
    },
    {
      name: 'no-tools-in-apps',
      comment: 'tools build and start what is shipped, and are not shipped',
      severity: 'error',
      from: { path: '^apps/', pathNot: '[.]spec[.]ts$' },
      to: { path: '^(tools|test|bench)/' },
    },
    {
      name: 'chaos-apart',
      comment: 'the model says what docs/api.md says, not what the code does',
      severity: 'error',
      from: { path: '^test/chaos/' },
      to: { path: '^(libs|apps)/', pathNot: '^apps/cli/local-postgres/' },
    },
    {
      name: 'no-unlisted-lib',
      comment: 'a new lib needs a rung on the ladder',
      severity: 'error',
      from: {},
      to: { path: '^libs/', pathNot: `^libs/(${LADDER.join('|')})/` },
    },
    {
      name: 'pure',
      comment: 'a file of a context without a role suffix decides and calculates, and does no more',
      severity: 'error',
      from: {
        path: `${LIB}[^.]+[.]ts$`,
        // Reading files of texts and drawing pages is technical, like the platform.
        pathNot: ['^libs/(platform|configuration|translations)/', '^libs/web/(pages|docs)/'],
      },
      to: {
        pathNot: [`${LIB}[^.]+[.]ts$`, EVENTS, PURE_OUTSIDE, PURE_PACKAGES],
      },
    },
    {
      name: 'events-import-the-kernel-only',
      severity: 'error',
      from: { path: `^libs/.*${EVENTS}` },
      to: { pathNot: ['^libs/platform/kernel/', EVENTS] },
    },
    {
      name: 'no-barrels',
      severity: 'error',
      from: {},
      to: { path: '^(libs|apps)/.*/index[.]ts$' },
    },
    {
      name: 'no-orphans',
      severity: 'error',
      from: {
        orphan: true,
        path: '^(libs|apps)/',
        pathNot: '^libs/web/.+/assets/',
      },
      to: {},
    },
    {
      name: 'not-to-unresolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-build-output',
      comment: 'a clean clone has no dist yet: import by the names in the imports of package.json',
      severity: 'error',
      from: {},
      to: { path: '^dist/' },
    },
    {
      name: 'load-when-used',
      comment:
        'most processes never use it, and it takes megabytes of memory: import() it where it is used',
      severity: 'error',
      from: { path: '^(libs|apps)/', pathNot: ['^apps/cli/', '[.]spec[.]ts$'] },
      to: {
        path: [
          'node_modules/(nodemailer|@fastify/(compress|cors)|@modelcontextprotocol/server)/',
          '^libs/platform/event-store/eventstoredb/eventstoredb-event-store[.]ts$',
          '^libs/platform/http/shared-counts[.]ts$',
          '^libs/platform/kernel/pictures[.]ts$',
        ],
        dynamic: false,
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'no-dev-dependency-at-run-time',
      severity: 'error',
      from: {
        path: '^(libs|apps|tools)/',
        // These work on the repository itself, and run nowhere else.
        pathNot: ['[.](spec|contract)[.]ts$', '^tools/(checks/|generate/|build/guides[.]mjs)'],
      },
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
        dependencyTypesNot: ['type-only'],
      },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      conditionNames: ['inkpad-source', 'import', 'require', 'node', 'default', 'types'],
      exportsFields: ['exports'],
    },
  },
};
