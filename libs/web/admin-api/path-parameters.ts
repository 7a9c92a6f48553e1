import type { PathParameter } from '#platform/http/endpoint.js';

const RECORD_ID = { type: 'integer', format: 'int64', example: 1 };

export const ACCOUNT_ID: PathParameter = {
  name: 'account_id',
  schema: RECORD_ID,
  description: 'The id of a store.',
};

export const USER_ID: PathParameter = {
  name: 'user_id',
  schema: RECORD_ID,
  description: 'The id of a user.',
};

export const TOKEN_ID: PathParameter = {
  name: 'token_id',
  schema: RECORD_ID,
  description: 'The id of an API token.',
};

export const INVITATION_ID: PathParameter = {
  name: 'invitation_id',
  schema: RECORD_ID,
  description: 'The id of an invitation.',
};
