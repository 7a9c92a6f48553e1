import { Controller, Get } from '@nestjs/common';
import { Authenticated, type Caller } from '#platform/http/caller.js';
import { DeclaresTag, Endpoint } from '#platform/http/endpoint.js';
import { Members } from './members.service.js';
import { TokenJson, toTokenJson } from './token.dto.js';

@DeclaresTag({
  name: 'API token',
  order: 15,
  description: 'The token that a request is made with. Tokens are created in the console.',
})
@Controller('/api/v1/token')
export class TokenController {
  constructor(private readonly members: Members) {}

  @Get()
  @Endpoint({
    id: 'getToken',
    tag: 'API token',
    summary: 'Show the token',
    description:
      'The name of the token that the request is made with, when it expires, and what it has less than its user.',
    status: 200,
    response: TokenJson,
  })
  async show(@Authenticated() { tokenId }: Caller): Promise<TokenJson> {
    return toTokenJson(await this.members.getToken(tokenId));
  }
}
