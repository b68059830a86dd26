<?php
/**
 * A platform for tests: the routes of `buddyboss/v1` that the tools use, on the data of a real WordPress.
 *
 * Members are users; everything else is an option per collection. Like the real platform, it reads the current user when
 * it is loaded, and uses it as the default of `user_id`. It is disabled by a file `platform-off` beside it.
 * The requests to its routes are recorded in `asked.jsonl`.
 */

if ( file_exists( __DIR__ . '/platform-off' ) ) {
	return;
}

add_action( 'init', function () {
	$GLOBALS['test_logged_in'] = get_current_user_id();
}, 0 );

add_filter( 'rest_pre_dispatch', function ( $result, $server, $request ) {
	if ( str_starts_with( $request->get_route(), '/buddyboss/v1/' ) ) {
		$asked = array(
			'method' => $request->get_method(),
			'route'  => substr( $request->get_route(), strlen( '/buddyboss/v1' ) ),
			'query'  => (object) $request->get_query_params(),
			'body'   => json_decode( $request->get_body() ),
		);
		file_put_contents( __DIR__ . '/asked.jsonl', wp_json_encode( $asked ) . "\n", FILE_APPEND | LOCK_EX );
	}
	return $result;
}, 10, 3 );

/** The user who was logged in when the platform was loaded. */
function test_me() {
	return $GLOBALS['test_logged_in'] ?? 0;
}

function test_all( $collection ) {
	return get_option( "test_$collection", array() );
}

function test_keep( $collection, $all ) {
	update_option( "test_$collection", $all, false );
}

function test_add( $collection, $item ) {
	$all        = test_all( $collection );
	$item['id'] = ( $all ? max( array_keys( $all ) ) : 0 ) + 1;
	test_keep( $collection, $all + array( $item['id'] => $item ) );
	return $item;
}

function test_missing( $code, $status = 404 ) {
	return new WP_Error( $code, 'Invalid ID.', array( 'status' => $status ) );
}

/** One page of a list, with the headers for the total. */
function test_page( $items, $request ) {
	$per_page = $request['per_page'] ?? 10;
	$page     = $request['page'] ?? 1;
	$shown    = array_slice( array_values( $items ), ( $page - 1 ) * $per_page, $per_page );
	$response = new WP_REST_Response( $shown );
	if ( $items ) {
		$response->header( 'X-WP-Total', count( $items ) );
		$response->header( 'X-WP-TotalPages', ceil( count( $items ) / $per_page ) );
	}
	return $response;
}

function test_member( $user, $request ) {
	return array(
		'id'           => $user->ID,
		'name'         => $user->display_name,
		'user_login'   => $user->user_login,
		'roles'        => $request['context'] === 'edit' ? $user->roles : null,
		'member_types' => get_user_meta( $user->ID, 'test_types', true ) ?: array(),
		'avatar_urls'  => array( 'full' => 'https://example.org/a.png' ),
		'_links'       => array( 'self' => array( array( 'href' => rest_url( "buddyboss/v1/members/$user->ID" ) ) ) ),
	);
}

function test_route( $route, $methods, $callback, $args = array(), $capability = 'read' ) {
	register_rest_route( 'buddyboss/v1', $route, array(
		'methods'             => $methods,
		'callback'            => $callback,
		'args'                => $args,
		'permission_callback' => function () use ( $capability ) {
			return current_user_can( $capability )
				?: new WP_Error( 'bp_rest_authorization_required', 'Sorry, you need to be logged in.', array( 'status' => rest_authorization_required_code() ) );
		},
	) );
}

function test_paging() {
	return array(
		'page'     => array( 'type' => 'integer', 'minimum' => 1, 'default' => 1 ),
		'per_page' => array( 'type' => 'integer', 'minimum' => 1, 'maximum' => 100, 'default' => 10 ),
		'search'   => array( 'type' => 'string' ),
		'include'  => array( 'type' => 'array', 'items' => array( 'type' => 'integer' ) ),
		'exclude'  => array( 'type' => 'array', 'items' => array( 'type' => 'integer' ) ),
	);
}

function test_required( ...$names ) {
	return array_fill_keys( $names, array( 'required' => true ) );
}

/** A profile field: text, choices or a date. */
function test_field( $id ) {
	$fields = array( 1 => array( 'City', 'textbox' ), 2 => array( 'Colours', 'checkbox' ), 3 => array( 'Birthday', 'datebox' ) );
	return isset( $fields[ $id ] ) ? array( 'id' => $id, 'name' => $fields[ $id ][0], 'type' => $fields[ $id ][1] ) : null;
}

/** The standard routes of a collection: list, create, get, update, delete. */
function test_collection( $route, $collection, $code, $required = array() ) {
	$args = test_required( ...$required );
	test_route( $route, 'GET', function ( $request ) use ( $collection ) {
		return test_page( test_found( $collection, $request ), $request );
	}, test_paging() );
	test_route( $route, 'POST', function ( $request ) use ( $collection ) {
		return test_add( $collection, $request->get_json_params() );
	}, $args );
	test_route( "$route/(?P<id>[\\d]+)", 'GET,PUT,DELETE', function ( $request ) use ( $collection, $code ) {
		$all = test_all( $collection );
		$id  = (int) $request['id'];
		if ( ! isset( $all[ $id ] ) ) {
			return test_missing( $code );
		}
		$before = $all[ $id ];
		if ( $request->get_method() === 'GET' ) {
			return $before;
		}
		if ( $request->get_method() === 'PUT' ) {
			$all[ $id ] = $request->get_json_params() + $before;
			test_keep( $collection, $all );
			return $all[ $id ];
		}
		unset( $all[ $id ] );
		test_keep( $collection, $all );
		return array( 'deleted' => true, 'previous' => $before );
	} );
}

function test_found( $collection, $request ) {
	$search = strtolower( $request['search'] ?? '' );
	return array_filter( test_all( $collection ), function ( $item ) use ( $request, $search, $collection ) {
		if ( $collection === 'groups' && $request['user_id'] ) {
			$member = test_all( "group_{$item['id']}" )[ (int) $request['user_id'] ] ?? null;
			if ( ! $member || $member['role'] === 'ban' ) {
				return false;
			}
		}
		if ( $request['include'] && ! in_array( $item['id'], $request['include'], true ) ) {
			return false;
		}
		foreach ( array( 'parent', 'user_id', 'is_confirmed', 'item_id' ) as $key ) {
			if ( isset( $request[ $key ], $item[ $key ] ) && (int) $item[ $key ] !== (int) $request[ $key ] ) {
				return false;
			}
		}
		$is_hidden = ( $item['status'] ?? '' ) === 'hidden' && $request['show_hidden'] !== 'true';
		return ! $is_hidden && ( ! $search || str_contains( strtolower( wp_json_encode( $item ) ), $search ) );
	} );
}

add_action( 'rest_api_init', function () {
	test_route( '/members', 'GET', function ( $request ) {
		$query = array( 'orderby' => 'display_name', 'search' => $request['search'] ? "*{$request['search']}*" : '' );
		$users = get_users( $query + array( 'include' => $request['include'] ?? array(), 'exclude' => $request['exclude'] ?? array() ) );
		return test_page( array_map( fn( $user ) => test_member( $user, $request ), $users ), $request );
	}, test_paging() );
	test_route( '/members/(?P<id>[\d]+)', 'GET,PUT', function ( $request ) {
		$user = get_userdata( (int) $request['id'] );
		if ( ! $user ) {
			return test_missing( 'bp_rest_member_invalid_id' );
		}
		$type = $request->get_json_params()['member_type'] ?? null;
		if ( $type === 'teacher' ) {
			update_user_meta( $user->ID, 'test_types', array( $type ) );
		}
		return test_member( $user, $request );
	} );

	test_collection( '/groups', 'groups', 'bp_rest_group_invalid_id', array( 'name', 'description', 'creator_id' ) );
	test_route( '/groups/(?P<group>[\d]+)/members(?:/(?P<user>[\d]+))?', 'GET,POST,PUT,DELETE', function ( $request ) {
		$collection = "group_{$request['group']}";
		$all        = test_all( $collection );
		$user       = (int) ( $request['user'] ?? $request['user_id'] ?? 0 );
		switch ( $request->get_method() ) {
			case 'GET':
				return test_page( $all, $request );
			case 'POST':
				$all[ $user ] = array( 'id' => $user, 'role' => 'member' );
				break;
			case 'PUT':
				$all[ $user ]['role'] = $request['role'] ?? $request['action'];
				break;
			case 'DELETE':
				unset( $all[ $user ] );
		}
		test_keep( $collection, $all );
		return $all[ $user ] ?? array( 'deleted' => true );
	} );

	test_route( '/activity', 'POST', fn( $request ) => test_add( 'activity', array( 'user_id' => get_current_user_id() ) + $request->get_json_params() ), array( 'content' => array( 'type' => 'string', 'required' => true ) ) );
	// Like the platform: the user who changes a post becomes its author, unless the request names the author.
	test_route( '/activity/(?P<id>[\d]+)', 'PUT', function ( $request ) {
		$all = test_all( 'activity' );
		$id  = (int) $request['id'];
		if ( ! isset( $all[ $id ] ) ) {
			return test_missing( 'bp_rest_invalid_id' );
		}
		$all[ $id ] = array( 'user_id' => (int) ( $request['user_id'] ?? get_current_user_id() ) ) + $request->get_json_params() + $all[ $id ];
		test_keep( 'activity', $all );
		return $all[ $id ];
	} );
	test_collection( '/activity', 'activity', 'bp_rest_invalid_id', array( 'content' ) );
	test_route( '/activity/(?P<id>[\d]+)/favorite', 'PUT', function ( $request ) {
		$all = test_all( 'activity' );
		$id  = (int) $request['id'];
		$all[ $id ]['favorited'] = empty( $all[ $id ]['favorited'] );
		test_keep( 'activity', $all );
		return $all[ $id ];
	} );
	// Like the platform: a user who is not logged in gets a success, and no comment is created.
	test_route( '/activity/(?P<id>[\d]+)/comment', 'GET,POST', function ( $request ) {
		$id = (int) $request['id'];
		if ( $request->get_method() === 'POST' && test_me() ) {
			test_add( "comments_$id", array( 'content' => $request['content'], 'user_id' => test_me() ) );
		}
		$comments = array_values( test_all( "comments_$id" ) );
		return $request->get_method() === 'GET' ? $comments : array( 'created' => true ) + ( test_me() ? array( 'comments' => $comments ) : array() );
	}, array( 'content' => array( 'type' => 'string' ) ) );

	test_collection( '/messages', 'messages', 'bp_rest_invalid_id', array( 'recipients', 'message', 'sender_id' ) );
	test_route( '/messages/action/(?P<id>[\d]+)', 'POST', function ( $request ) {
		$all = test_all( 'messages' );
		$id  = (int) $request['id'];
		if ( test_me() ) {
			$all[ $id ]['unread'] = (bool) $request['value'];
			test_keep( 'messages', $all );
		}
		return $all[ $id ] ?? array();
	} );

	// Like the platform: it ends the caller's own friendship with that member, and always reports success.
	test_route( '/friends', 'DELETE', function ( $request ) {
		$pair = array( test_me(), (int) $request['friend_id'] );
		sort( $pair );
		$kept = array_filter( test_all( 'friends' ), function ( $it ) use ( $pair ) {
			$own = array( (int) $it['friend_id'], (int) $it['initiator_id'] );
			sort( $own );
			return $own !== $pair;
		} );
		test_keep( 'friends', $kept );
		return array( 'unfriend' => true );
	} );
	test_route( '/friends', 'POST', fn( $request ) => test_add( 'friends', array( 'is_confirmed' => (int) ! empty( $request['force'] ) ) + $request->get_json_params() ) );
	// Only the invited user may accept, and must be logged in.
	test_route( '/friends/(?P<id>[\d]+)', 'PUT', function ( $request ) {
		$all = test_all( 'friends' );
		$id  = (int) $request['id'];
		if ( (int) ( $all[ $id ]['friend_id'] ?? 0 ) !== test_me() ) {
			return test_missing( 'bp_rest_friends_cannot_update_item', 500 );
		}
		$all[ $id ]['is_confirmed'] = 1;
		test_keep( 'friends', $all );
		return $all[ $id ];
	} );
	test_collection( '/friends', 'friends', 'bp_rest_invalid_id', array( 'friend_id', 'initiator_id' ) );

	test_collection( '/notifications', 'notifications', 'bp_rest_invalid_id' );
	test_route( '/xprofile/groups', 'GET', fn() => array( array( 'id' => 1, 'name' => 'Details' ) ) );
	test_route( '/xprofile/fields', 'GET', fn() => array( array( 'id' => 1, 'name' => 'City' ) ), array( 'user_id' => array( 'type' => 'integer', 'default' => test_me() ) ) );
	test_route( '/xprofile/fields/(?P<id>[\d]+)', 'GET', fn( $request ) => test_field( (int) $request['id'] ) ?: test_missing( 'bp_rest_invalid_id' ) );
	test_route( '/xprofile/(?P<field>[\d]+)/data/(?P<user>[\d]+)', 'GET,PUT', function ( $request ) {
		$field = test_field( (int) $request['field'] );
		$key   = "test_field_{$request['field']}";
		if ( $request->get_method() === 'PUT' ) {
			$value = $request['value'];
			// Like the platform: the choices are the text of a JSON array. An array is a fatal error, other text is not a choice.
			if ( $field['type'] === 'checkbox' ) {
				$value = array_filter( (array) json_decode( $value, true ) );
			}
			if ( $field['type'] === 'datebox' && ! preg_match( '/^\d{4}-\d{1,2}-\d{1,2} 00:00:00$/', $value ) ) {
				return new WP_Error( 'rest_user_cannot_save_xprofile_data', 'Cannot save XProfile data.', array( 'status' => 500 ) );
			}
			update_user_meta( (int) $request['user'], $key, $value );
		}
		$value = get_user_meta( (int) $request['user'], $key, true );
		return array(
			'field_id' => (int) $request['field'],
			'user_id'  => (int) $request['user'],
			'value'    => array( 'raw' => maybe_serialize( $value ), 'unserialized' => array_values( array_filter( (array) $value ) ), 'rendered' => '<p>' . esc_html( implode( ', ', (array) $value ) ) . '</p>' ),
		);
	} );
	test_route( '/components', 'GET', fn() => array( array( 'name' => 'members', 'status' => 'active' ) ) );

	test_route( '/moderation/report', 'POST', fn( $request ) => test_add( 'reports', $request->get_json_params() ), test_required( 'item_id', 'item_type', 'report_category' ) );
	test_collection( '/moderation', 'blocks', 'bp_rest_invalid_id', array( 'item_id' ) );
	test_collection( '/forums', 'forums', 'bp_rest_forum_invalid_id' );
	test_route( '/topics', 'POST', fn( $request ) => test_add( 'topics', array( 'author' => get_current_user_id(), 'status' => 'publish', 'is_closed' => false, 'sticky' => false ) + $request->get_json_params() ), test_required( 'parent', 'title' ) );
	test_route( '/reply', 'POST', fn( $request ) => test_add( 'replies', array( 'author' => get_current_user_id(), 'parent' => (int) $request['topic_id'], 'reply_to' => 0 ) + $request->get_json_params() ), test_required( 'topic_id', 'content' ) );
	test_collection( '/topics', 'topics', 'bp_rest_topic_invalid_id', array( 'parent', 'title' ) );
	test_collection( '/reply', 'replies', 'bp_rest_reply_invalid_id', array( 'topic_id', 'content' ) );
} );
