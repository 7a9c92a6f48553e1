import { Body, Controller, Param, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { getNowMs } from '#platform/kernel/clock.js';
import { NotFoundError, RejectedError } from '#platform/kernel/errors.js';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import type { Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import { Members, type ListedToken } from '#identity/members.service.js';
import { isAllowed, isRole } from '#identity/roles.js';
import { CreateToken, RevokeToken } from '#identity/token.commands.js';
import type { TokenRestrictions } from '#identity/token.js';
import { NewTokenDto } from '#web/admin-api/admin-api-token.dto.js';
import { capitalize } from '#web/pages/capitalize.js';
import {
  ConsoleWriter,
  CurrentStore,
  CurrentUser,
  type EnteredStore,
  type SignedInUser,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { Reauthentication } from '#web/sign-in/reauthentication.service.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import { loadView } from '#web/pages/view.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import { defineForm, type ValuesOf } from '#web/pages/forms.js';
import { toFormErrors, type Rejectable } from '#web/pages/form-errors.js';
import { type PageResult, showPage, askToConfirm, redirectTo } from '#web/pages/page-results.js';
import type { Localization } from '#translations/translations.js';
import { localizeRequest } from '#web/pages/localize.js';
import { describeAccess } from './token-access.js';
import { ISSUES } from '#translations/issues.js';
import type { FieldIssues } from '#platform/kernel/issues.js';

type TokenRow = {
  id: number;
  name: string;
  owner: string;
  isOwn: boolean;
  /** Empty: the token may do what its user may. */
  access: string;
  createdOn: string;
  expiresOn: string;
  isExpired: boolean;
  lastUsed: string;
};

type Choices = readonly { value: string; text: string }[];

type TokensView = {
  tokens: TokenRow[];
  isForAll: boolean;
  lifetimes: Choices;
  roles: Choices;
  reaches: Choices;
  flash: string;
  /** Whether the tokens of the user end once they show that the address is theirs. */
  endsWhenConfirmed: boolean;
};

const view = loadView<TokensView>(import.meta.url, './views/tokens.eta');
const newTokenView = loadView<{
  name: string;
  token: string;
  expires: string;
  access: string;
  example: string;
  endsWhenConfirmed: boolean;
}>(import.meta.url, './views/new-token.eta');

const DAY_MS = 24 * 60 * 60 * 1000;

/** The lifetimes to choose from, in days; empty means until revoked. */
const LIFETIMES = ['', '30', '90', '365'] as const;

/** The roles to choose from besides the user's own. A token with the role owner has no less than its user. */
const LOWER_ROLES = ['manager', 'staff'] as const;

/** The stores to choose from: all, or the one of the page. The command line can choose several. */
const REACHES = ['all', 'one'] as const;

const tokenForm = defineForm(NewTokenDto, ['name', 'role', 'read_only']);

type TokenFields = ValuesOf<typeof tokenForm> & { lifetime: string; reach: string };

@Controller('app/stores/:account_id/tokens')
export class StoreTokensController {
  constructor(
    private readonly commands: FormCommands,
    private readonly members: Members,
    private readonly reauthentication: Reauthentication,
    private readonly times: StoreTimes,
    private readonly config: Config,
  ) {}

  @GetPage('tokens.read')
  async show(
    @Query('done') done: string | undefined,
    @Localized() localization: Localization,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const { revoked } = localization.t.console.tokens;
    return this.render(localization, user, store, { flash: findFlashMessage(done, { revoked }) });
  }

  @PostForm('tokens.create', '', 30)
  async create(
    @Body() form: Form,
    @ConsoleWriter() by: AuditedWriter,
    @Req() request: FastifyRequest,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const { lifetime = '', reach = 'all' } = form;
    const values = { ...tokenForm.read(form), lifetime, reach };
    const localization = localizeRequest(request);
    try {
      const restrictions = parseRestrictions(values, store);
      const field = 'current_password';
      await this.reauthentication.assertPassword(user, form[field], field, request);
      const command = new CreateToken(
        by,
        user.userId,
        values.name,
        parseExpiry(lifetime),
        restrictions,
      );
      const { token, expiresAt, endsWhenConfirmed } = await this.commands.execute(command);
      const { day } = await this.times.createFormats(store.id, localization.locale);
      const url = `${this.config.publicUrl}/api/v1/accounts/${store.id}`;
      // In this response, so that the token is in no address and no cookie.
      return showPage({
        view: newTokenView,
        title: localization.t.console.newToken.title,
        data: {
          name: values.name,
          token,
          expires: expiresAt ? day(new Date(expiresAt)) : '',
          access: describeAccess(restrictions, store.id, localization),
          example: `curl -H "Authorization: Bearer ${token}" ${url}`,
          endsWhenConfirmed,
        },
        width: 'form',
      });
    } catch (error) {
      const errors = toFormErrors(error, localization);
      return this.render(localization, user, store, { values, errors });
    }
  }

  @GetPage('tokens.revoke', ':id/revoke')
  async askToRevoke(
    @Param('id') id: string,
    @Localized() localization: Localization,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const tokens = await this.listTokens(user, store);
    const token = tokens.find((candidate) => candidate.id === parsePathId(id));
    if (!token) throw new NotFoundError('Token');
    const base = `/app/stores/${store.id}/tokens`;
    const { tokens: t } = localization.t.console;
    return askToConfirm({
      question: t.askRevoke,
      about: token.name,
      text: t.askRevokeText,
      yes: t.revokeYes,
      no: t.keep,
      back: base,
    });
  }

  @PostForm('tokens.revoke', ':id/revoke', 30)
  async revoke(
    @Param('id') id: string,
    @ConsoleWriter() by: AuditedWriter,
    @Localized() localization: Localization,
    @CurrentUser() user: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const canRevokeOthers = isAllowed(store.role, 'tokens.revoke_of_others');
    const revoker = { userId: user.userId, accountId: store.id, canRevokeOthers };
    try {
      await this.commands.execute(new RevokeToken(by, parsePathId(id), revoker));
    } catch (error) {
      const errors = toFormErrors(error, localization);
      return this.render(localization, user, store, { errors });
    }
    return redirectTo(`/app/stores/${store.id}/tokens?done=revoked`);
  }

  private listTokens({ userId }: SignedInUser, { id, role }: EnteredStore): Promise<ListedToken[]> {
    return this.members.listTokens(id, userId, isAllowed(role, 'tokens.read_of_others'));
  }

  private async render(
    localization: Localization,
    user: SignedInUser,
    store: EnteredStore,
    {
      errors,
      values = { ...tokenForm.toValues({}), lifetime: '', reach: 'all' },
      flash = '',
    }: Rejectable & { values?: TokenFields; flash?: string },
  ): Promise<PageResult> {
    const isForAll = isAllowed(store.role, 'tokens.read_of_others');
    const tokens = await this.listTokens(user, store);
    const { tokens: t, roles, pageOf } = localization.t.console;
    const { day, minute } = await this.times.createFormats(store.id, localization.locale);
    const rows = tokens.map((token) => ({
      id: token.id,
      name: token.name,
      owner: token.ownerId === user.userId ? t.you : token.ownerName,
      isOwn: token.ownerId === user.userId,
      access: describeAccess(token, store.id, localization),
      createdOn: day(token.createdAt),
      expiresOn: token.expiresAt ? day(token.expiresAt) : t.never,
      isExpired: token.expired,
      lastUsed: token.lastUsedAt ? minute(token.lastUsedAt) : t.never,
    }));
    return showPage({
      view,
      title: pageOf({ page: t.title, store: store.name }),
      data: {
        tokens: rows,
        isForAll,
        lifetimes: LIFETIMES.map((value) => ({
          value,
          text: value === '' ? t.untilRevoked : t[`days${value}`],
        })),
        roles: [
          { value: '', text: t.sameRole },
          ...LOWER_ROLES.map((value) => ({
            value,
            text: capitalize(t.atMost({ role: roles.inText[value] }), localization.locale),
          })),
        ],
        reaches: REACHES.map((value) => ({
          value,
          text: value === 'all' ? t.allStores : t.onlyStore({ store: store.name }),
        })),
        flash,
        endsWhenConfirmed: !(await this.members.isConfirmed(user.userId)),
      },
      errors,
      inputs: {
        ...tokenForm.toInputs(values),
        lifetime: { value: values.lifetime },
        reach: { value: values.reach },
      },
    });
  }
}

/** Never takes a value that the form does not have for no restriction. @throws RejectedError */
function parseRestrictions(
  { role, reach, read_only: isReadOnly }: TokenFields,
  { id }: EnteredStore,
): TokenRestrictions {
  const errors: FieldIssues = {
    ...(role !== '' && !isRole(role) && { role: [ISSUES.unknown_role] }),
    ...(!(REACHES as readonly string[]).includes(reach) && {
      account_ids: [ISSUES.unknown_choice],
    }),
  };
  if (Object.keys(errors).length > 0) throw new RejectedError(errors);
  return {
    role: isRole(role) ? role : null,
    accountIds: reach === 'one' ? [id] : null,
    isReadOnly,
  };
}

function parseExpiry(lifetime: string): Date | null {
  const isKnown = (LIFETIMES as readonly string[]).includes(lifetime);
  return isKnown && lifetime !== '' ? new Date(getNowMs() + Number(lifetime) * DAY_MS) : null;
}
