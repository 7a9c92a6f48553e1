import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import type { AuditedWriter } from '#platform/event-store/commands/audited-writes.service.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { Paged, PageReader } from '#platform/http/page.js';
import { parsePathId } from '#platform/http/path.js';
import { ApiTokens } from '#identity/api-tokens.service.js';
import { CreateToken, LimitToken, RevokeToken } from '#identity/token.commands.js';
import { AdminCommands, AdminWriter, renderNothing } from './admin-commands.service.js';
import {
  CreatedTokenJson,
  NewTokenDto,
  toApiTokenJson,
  toCreatedTokenJson,
  TokenChangesDto,
  TokenJson,
  TokenQuery,
} from './admin-api-token.dto.js';
import { TOKEN_ID } from './path-parameters.js';

@DeclaresTag({
  name: 'API tokens',
  order: 540,
  description:
    'The tokens of the API of the stores. Those of the admin API are made by the operator.',
})
@Controller('/api/admin/v1/tokens')
export class AdminApiTokensController {
  constructor(
    private readonly commands: AdminCommands,
    private readonly tokens: ApiTokens,
  ) {}

  @Get()
  @Endpoint({
    id: 'adminListTokens',
    tag: 'API tokens',
    summary: 'List API tokens',
    description: 'Every token that is in force, by id. None shows the token itself.',
    status: 200,
    response: [TokenJson],
    errors: [422],
  })
  async list(
    @Query() { user_id: user, include_ended: isComplete, ...page }: TokenQuery,
    @Paged() pages: PageReader,
  ): Promise<TokenJson[]> {
    const tokens = await pages.getPage(
      page,
      (range) => this.tokens.list({ user, isComplete }, range),
      ({ id }) => [id],
    );
    return tokens.map(toApiTokenJson);
  }

  @Post()
  @Endpoint({
    id: 'adminCreateToken',
    tag: 'API tokens',
    summary: 'Create an API token',
    description: 'The response is the only place that shows the token itself.',
    status: 201,
    response: CreatedTokenJson,
    errors: [404, 422],
    codes: ['limit_reached'],
  })
  async create(
    @AdminWriter() by: AuditedWriter,
    @Body() { user_id: user, name, role, account_ids, read_only, expires_at }: NewTokenDto,
  ): Promise<CreatedTokenJson> {
    const restrictions = { role, accountIds: account_ids, isReadOnly: read_only };
    return this.commands.execute(
      by,
      (author) => new CreateToken(author, user, name, expires_at, restrictions),
      async ({ tokenId, token }, manager) =>
        toCreatedTokenJson(await this.tokens.get(tokenId, manager), token),
    );
  }

  @Get(':token_id')
  @Endpoint({
    id: 'adminGetToken',
    tag: 'API tokens',
    summary: 'Show an API token',
    description: 'Also one that was revoked, and never the token itself.',
    path: [TOKEN_ID],
    status: 200,
    response: TokenJson,
    errors: [404],
  })
  async show(@Param('token_id') id: string): Promise<TokenJson> {
    return toApiTokenJson(await this.tokens.get(parsePathId(id)));
  }

  @Patch(':token_id')
  @Endpoint({
    id: 'adminLimitToken',
    tag: 'API tokens',
    summary: 'Give an API token a limit of its own',
    description: 'In place of the limit of the service.',
    path: [TOKEN_ID],
    status: 200,
    response: TokenJson,
    errors: [404, 422],
  })
  async limit(
    @AdminWriter() by: AuditedWriter,
    @Param('token_id') id: string,
    @Body() { per_minute: perMinute }: TokenChangesDto,
  ): Promise<TokenJson> {
    return this.commands.execute(
      by,
      (author) => new LimitToken(author, parsePathId(id), perMinute),
      async ({ tokenId }, manager) => toApiTokenJson(await this.tokens.get(tokenId, manager)),
    );
  }

  @Delete(':token_id')
  @Endpoint({
    id: 'adminRevokeToken',
    tag: 'API tokens',
    summary: 'Revoke an API token',
    description: 'It stops working within a second in every process.',
    path: [TOKEN_ID],
    status: 204,
    errors: [404],
  })
  async revoke(@AdminWriter() by: AuditedWriter, @Param('token_id') id: string): Promise<void> {
    await this.commands.execute(
      by,
      (author) => new RevokeToken(author, parsePathId(id)),
      renderNothing,
    );
  }
}
