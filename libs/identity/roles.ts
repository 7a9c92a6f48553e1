import type { ErrorCode } from '#platform/kernel/error-catalogue.js';

/** Lists the roles, the one with the most rights first. */
export const ROLES = ['owner', 'manager', 'staff'] as const;

export type Role = (typeof ROLES)[number];

/**
 * Lists the lowest role for each operation (ADR-0050); those above it may do it too. The operations of the API have the names of
 * the OpenAPI document; those that only the console has are called `<records>.<verb>`, and a right that an operation checks
 * itself `<operation>.<right>`. The table of docs/roles.md is generated from it.
 */
const MIN_ROLE = {
  getStatus: 'staff',
  getToken: 'staff',
  listAccounts: 'staff',
  getAccount: 'staff',
  updateAccount: 'manager',
  setLogo: 'manager',
  removeLogo: 'manager',

  listCards: 'staff',
  getCard: 'staff',
  createCard: 'manager',
  updateCard: 'manager',
  setCardStripImage: 'manager',
  archiveCard: 'manager',
  unarchiveCard: 'manager',

  listCustomers: 'staff',
  getCustomer: 'staff',
  createCustomer: 'staff',
  updateCustomer: 'staff',
  eraseCustomer: 'manager',
  exportCustomer: 'manager',
  mergeCustomers: 'manager',
  unmergeCustomers: 'manager',

  listCustomerCards: 'staff',
  getCustomerCard: 'staff',
  enrolCustomer: 'staff',
  stampCustomerCard: 'staff',
  redeemReward: 'staff',
  getCustomerCardByCode: 'staff',
  stampByCode: 'staff',
  redeemByCode: 'staff',
  confirmCustomerCardByCode: 'staff',
  executeBatch: 'staff',
  listCustomerCardEvents: 'staff',
  explainCustomerCard: 'staff',
  getWallet: 'staff',
  adjustCustomerCard: 'manager',
  reverseCardEvent: 'staff',
  'reverseCardEvent.any': 'manager',
  reverseReceipt: 'staff',

  listRewards: 'staff',
  getReward: 'staff',
  createReward: 'manager',
  updateReward: 'manager',
  deleteReward: 'manager',
  listRedemptions: 'manager',

  listLocations: 'staff',
  getLocation: 'staff',
  createLocation: 'manager',
  updateLocation: 'manager',
  deleteLocation: 'manager',

  listPosters: 'staff',
  getPoster: 'staff',
  createPoster: 'manager',
  updatePoster: 'manager',
  deletePoster: 'manager',

  listImports: 'manager',
  getImport: 'manager',
  createImport: 'manager',
  listImportRows: 'manager',
  startImport: 'manager',
  discardImport: 'manager',
  undoImport: 'manager',

  listAnnouncements: 'manager',
  getAnnouncement: 'manager',
  createAnnouncement: 'manager',
  updateAnnouncement: 'manager',
  previewAnnouncement: 'manager',
  sendAnnouncement: 'manager',
  cancelAnnouncement: 'manager',
  listAnnouncementRecipients: 'manager',
  listMessageRules: 'manager',
  getMessageRule: 'manager',
  createMessageRule: 'manager',
  updateMessageRule: 'manager',
  deleteMessageRule: 'manager',
  getMessageRuleReach: 'manager',
  listMessageRuleReach: 'manager',
  listMessageRuleRecipients: 'manager',
  getMessageSettings: 'manager',
  updateMessageSettings: 'manager',

  listHistory: 'manager',
  getEventProof: 'manager',
  listEvents: 'manager',
  listAudit: 'owner',
  exportRecords: 'manager',
  getStatistics: 'manager',

  listWebhookSubscriptions: 'owner',
  getWebhookSubscription: 'owner',
  createWebhookSubscription: 'owner',
  updateWebhookSubscription: 'owner',
  deleteWebhookSubscription: 'owner',
  testWebhookSubscription: 'owner',
  rotateWebhookSecret: 'owner',
  listWebhookDeliveries: 'owner',
  getWebhookDelivery: 'owner',
  redeliverWebhook: 'owner',
  replayWebhooks: 'owner',

  'customers.send_link': 'staff',
  'store.read': 'staff',
  'counter.use': 'staff',
  'store.settings': 'manager',
  'stores.create': 'owner',
  'locations.pin': 'manager',
  'imports.choose_columns': 'manager',
  'outbox.read': 'manager',
  'outbox.send': 'manager',
  'tokens.read': 'manager',
  'tokens.create': 'manager',
  'tokens.revoke': 'manager',
  'tokens.read_of_others': 'owner',
  'tokens.revoke_of_others': 'owner',
  'users.read': 'owner',
  'users.invite': 'owner',
  'users.change_role': 'owner',
  'users.remove': 'owner',
  'users.require_second_factor': 'owner',
  'audit.read': 'owner',
} as const satisfies Record<string, Role>;

export type Operation = keyof typeof MIN_ROLE;

export const OPERATIONS = Object.keys(MIN_ROLE) as Operation[];

/** Names the error of a refused request; the error catalogue has its status. */
export type DenialCode = Extract<ErrorCode, 'forbidden' | 'not_found'>;

export function isRole(text: string): text is Role {
  return (ROLES as readonly string[]).includes(text);
}

export function isAllowed(role: Role, operation: Operation): boolean {
  return ROLES.indexOf(role) <= ROLES.indexOf(MIN_ROLE[operation]);
}

/** Returns the role itself, or the maximum where that has fewer rights. @param max null: no maximum */
export function limitRole(role: Role, max: Role | null): Role {
  return max !== null && ROLES.indexOf(max) > ROLES.indexOf(role) ? max : role;
}

/**
 * @param role null: not a member, who may not know that there is such a store
 * @param operation by name: what the table does not have is only for owners, who have full access
 * @returns null when it is allowed
 */
export function findDenial(role: Role | null, operation: string | undefined): DenialCode | null {
  if (role === null) return 'not_found';
  if (role === 'owner') return null;
  return isOperation(operation) && isAllowed(role, operation) ? null : 'forbidden';
}

/** Finds the roles that may call an operation. @returns null when all of them may */
export function findRequiredRoles(operation: string): Role[] | null {
  const allowed = ROLES.filter((role) => findDenial(role, operation) === null);
  return allowed.length === ROLES.length ? null : allowed;
}

function isOperation(name: string | undefined): name is Operation {
  return name !== undefined && Object.hasOwn(MIN_ROLE, name);
}
